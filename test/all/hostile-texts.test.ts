import "../cli/hostile-texts.test.ts";
