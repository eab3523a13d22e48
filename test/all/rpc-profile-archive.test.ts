import "../extract/rpc-profile-archive.test.ts";
