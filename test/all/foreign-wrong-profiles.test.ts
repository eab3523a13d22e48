import "../extract/foreign-wrong-profiles.test.ts";
