import { describe } from "vitest";
import { requires } from "../fixtures/command/requirement.ts";
import { btc } from "../fixtures/source/recorded-bars.ts";
import { testMatches } from "../fixtures/trades/matched-runs.ts";

describe.each([
  ["generated bars", { rows: 60_000 }],
  ["many fills to an order", { fills: 50_000 }],
  ...(requires("recordings") ? [["recorded bars", { bars: btc }] as const] : []),
] as const)("a simulated run on %s", (_, options) => testMatches(options));
