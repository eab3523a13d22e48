import { describe } from "vitest";
import { testBudgets } from "../fixtures/command/archive-budgets.ts";

// the other transport is test/all/archive-budgets.test.ts
describe("over rest", () => testBudgets("rest"));
