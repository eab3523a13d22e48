import "../system/starting.test.ts";
