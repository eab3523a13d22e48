import "../extract/held-nights.test.ts";
