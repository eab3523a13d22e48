import "../extract/proof-worlds.test.ts";
