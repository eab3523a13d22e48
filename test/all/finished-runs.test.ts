import "../extract/finished-runs.test.ts";
