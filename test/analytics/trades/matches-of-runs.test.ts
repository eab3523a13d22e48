import { describe } from "vitest";
import { testMatches } from "../../fixtures/trades/matched-runs.ts";

describe.each([
  ["generated bars", { rows: 8_000 }],
  ["many fills to an order", { fills: 5_000 }],
] as const)("a simulated run on %s", (_, options) => testMatches(options));
