import "../extract/cut-every-byte.test.ts";
