import "../contract/remote.test.ts";
