import "../cli/check-command.test.ts";
