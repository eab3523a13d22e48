import "../system/adapter.test.ts";
