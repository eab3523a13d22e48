import "../extract/error-scope.test.ts";
