import "../extract/answer-scope.test.ts";
