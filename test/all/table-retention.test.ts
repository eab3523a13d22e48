import "../extract/table-retention.test.ts";
