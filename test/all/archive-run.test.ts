import "../extract/archive-run.test.ts";
