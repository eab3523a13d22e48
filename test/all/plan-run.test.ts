import "../extract/plan-run.test.ts";
