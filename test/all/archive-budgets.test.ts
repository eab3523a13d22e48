import "../system/archive-budgets.test.ts";
