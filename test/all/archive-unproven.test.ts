import "../cli/archive-unproven.test.ts";
