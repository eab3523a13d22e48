import "../extract/foreign-gateways.test.ts";
