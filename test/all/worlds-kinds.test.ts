import "../cli/worlds-kinds.test.ts";
