import "../cli/lists.test.ts";
