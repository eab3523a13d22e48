import "../extract/rebuild-by-profile.test.ts";
