import "../cli/proof-table.test.ts";
