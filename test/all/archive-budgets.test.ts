import { describe } from "vitest";
import { testBudgets } from "../fixtures/command/archive-budgets.ts";

// the other transport is test/system/archive-budgets.test.ts
describe("over rpc", () => testBudgets("rpc"));
