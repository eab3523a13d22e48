// @module-tag slow
import { describe, expect, it } from "vitest";
import { allFindings, type ProfileCheck } from "../../../src/gateway/profile/check/profile-check.ts";
import { checkedCorvid, type Edits } from "../../fixtures/foreign/corvid/checked-corvid.ts";
import type { CorvidFaults } from "../../fixtures/foreign/corvid/corvid.ts";

describe("the right profile of a gateway that has RPC alone", () => {
  it("is fine, by at most 12 calls a table, and each column shows where it comes from", async () => {
    const { check, requests } = await checkedCorvid();
    expect(told(check!)).toEqual([]);
    expect(check!.run).toEqual({ instanceId: "north", runId: "2026-01-05" });
    const [fills, factors] = check!.tables;
    for (const [table, method] of [
      [fills!, "ListTrades"],
      [factors!, "ListSignals"],
    ] as const) {
      const calls = requests.filter((name) => name === method).length;
      expect(calls).toBe(table.requests);
      expect(calls).toBeGreaterThan(8);
      expect(calls).toBeLessThanOrEqual(12);
      expect(table).toMatchObject({ request: `POST /corvid.tape.v1.Tape/${method}`, status: 200, rows: 10 });
      expect(table.heeds.map(({ result }) => result)).toEqual(table.heeds.map(() => "ok"));
      expect(table.proof.reach).toBe("counted");
    }
    expect(requests).toHaveLength(check!.requests);
    expect(fills!.heeds.map(({ what }) => what)).toEqual([
      "order",
      "repeated request",
      "limit",
      "the next page",
      "from",
      "to",
      "both bounds",
      "unknown run",
      "unknown instance",
      "another run",
      "filter symbol",
    ]);
    expect(fills!.columns).toContainEqual({
      column: "side",
      from: "direction, with words",
      raw: '"DIRECTION_BUY"',
      canonical: "BUY",
      empty: false,
    });
    expect(fills!.columns).toContainEqual({
      column: "ts_event",
      from: "at",
      raw: '"1767571200000000013"',
      canonical: "1767571200000000013",
      empty: false,
    });
    expect(fills!.unused).toContainEqual({ field: "flags", raw: "[-1,2]", nearest: null });
    expect(check!.documents.map(({ document, holds }) => [document, holds])).toEqual([
      ["instances", "2 entries"],
      ["runs of north", "2 entries"],
      ["summary", ""],
      ["storage", "2 entries"],
    ]);
  });
});

const bounds = "from: window.since\n        to: window.until";
const sides = "words: { DIRECTION_BUY: BUY, DIRECTION_SELL: SELL }";
const size = "limit: page_size }";

/** A mistake, and what has to be said of it: by the check, or by what loads the file. */
const mistakes: readonly (readonly [what: string, edits: Edits, said: RegExp])[] = [
  [
    "from and to swapped",
    [[bounds, "from: window.until\n        to: window.since"]],
    /^rpc\.tables\.fills\.parameters\.from: .*Swap them: `from: window\.since` and `to: window\.until`/m,
  ],
  ["bounds in ms", [[size, `${size}\n      times: { unit: ms }`]], /factors\.times\.unit: .*finer unit/],
  ["to said to be inclusive", [[size, `${size}\n      times: { to: inclusive }`]], /times\.to: .*exclusive/],
  [
    "from said to be exclusive",
    [[size, `${size}\n      times: { from: exclusive }`]],
    /^rpc\.tables\.factors\.times\.from: .*includes rows with exactly.*from: inclusive/m,
  ],
  [
    "rows in ms",
    [["ts_event: at_ns", "ts_event: { from: at_ns, unit: ms }"]],
    /^tables\.factors\.columns\.ts_event: .*In ns it is 2026-01-05.*unit: ns/m,
  ],
  [
    "ts_event of the other field",
    [["ts_event: at\n", "ts_event: received\n"]],
    /fills\.times\.(?:from|to): /,
  ],
  [
    "run and instance swapped",
    [["instance: desk, run: session, from", "instance: session, run: desk, from"]],
    /^rpc\.tables\.factors\.parameters: .*not_found.*which fields name the run/m,
  ],
  [
    "the run in another field",
    [["run: scope.session\n        from", "run: code\n        from"]],
    /^rpc\.tables\.fills\.parameters: there were no rows, but the gateway counts 40 rows/m,
  ],
  [
    "the instance forgotten",
    [["        instance: scope.desk\n        run", "        run"]],
    /another run: south\/2026-01-05 returned the same rows/,
  ],
  [
    "the page size in another field",
    [["limit: page_size", "limit: since_ns"]],
    /limit: .*ignores `since_ns`/,
  ],
  [
    "a page that is too large",
    [["largest_limit: 10", "largest_limit: 50"]],
    /fills\.largest_limit: .*above 10/,
  ],
  [
    "the token in another field",
    [["send: cursor", "send: code"]],
    /^rpc\.tables\.fills\.pages\.send: .*returned no rows/m,
  ],
  [
    "no pages where there are some",
    [["      pages: { send: page_token, next: next_page_token }\n", ""]],
    /^rpc\.tables\.factors\.pages: .*`pages: \{ send: …, next: next_page_token \}`/m,
  ],
  ["a filter that is none", [["symbol: code }", "symbol: cursor }"]], /filters\.symbol: .*ignores `cursor`/],
  [
    "a word of the enum forgotten",
    [[sides, "words: { DIRECTION_BUY: BUY }"]],
    /columns\.side: direction has the value "DIRECTION_SELL", which is not in `words`/,
  ],
  [
    "words of another table",
    [["SELL: SELL", "SELL: SHORT"]],
    /columns\.side: .*"SHORT", but side must be BUY or SELL/,
  ],
  ["an enum as it is", [[`{ from: direction, ${sides} }`, "direction"]], /columns\.side: .*"DIRECTION_BUY"/],
  [
    "a field said to be absent",
    [["fee_currency: { from: fee_currency, optional: true }", "fee_currency: absent"]],
    /columns\.fee_currency: .*field fee_currency/,
  ],
  [
    "a field that is not in every row",
    [["fee: { from: fee, optional: true }", "fee: fee"]],
    /columns\.fee: .* lack the field fee .*optional: true/,
  ],
  ["the run's id from another field", [["run_id: session", "run_id: desk"]], /run_id: a row has "north"/],
  ["a time for seq", [["seq: number", "seq: at_ns"]], /columns\.seq: two rows have \d+/],
  [
    "the words for a run's status",
    [["STATE_DONE: FINISHED, ", ""]],
    /^rpc\.documents\.runs\.words: .*"STATE_DONE"/m,
  ],
  [
    "the ends of the facts swapped",
    [["first: first\n      last: last", "first: last\n      last: first"]],
    /Swap/,
  ],
  [
    "a table of another name in the facts",
    [["trades: fills", "fills: fills"]],
    /storage\.tables: no entry is for fills/,
  ],
  [
    "a table of two names in the facts",
    [["trades: fills, ", "trades: fills, ticks: fills, "]],
    /storage\.tables\.ticks is the same table as trades Remove one/,
  ],
  [
    "a document's run in another field",
    [["instance: desk, run: session }\n  tables", "run: desk }\n  tables"]],
    /^rpc\.documents\.summary\.parameters: .*not_found/m,
  ],
  ["the other protocol", [["protocol: grpc", "protocol: connect"]], /instances\.method: .*`protocol: grpc`/],
  ["another base", [["protocol: grpc", "protocol: grpc\n  base: /v1"]], /unimplemented.*`base` of rpc/],
  ["the rows' place", [["rows: trades", "rows: trade"]], /tables\.fills\.rows .*Did you mean trades\?/],
  [
    "the method of another table",
    [["Tape.ListTrades\n", "Tape.ListSignals\n"]],
    /ListSignalsRequest does not have/,
  ],
];

describe("a wrong profile of RPC", () => {
  it.each(mistakes)("%s: the mistake is named", async (_, edits, said) => {
    const { check, faults } = await checkedCorvid(edits);
    const all = check === null ? faults.map(({ message, hint }) => `${message} ${hint}`) : told(check);
    expect(all.join("\n")).toMatch(said);
    for (const table of check?.tables ?? []) expect(table.requests).toBeLessThanOrEqual(12);
  });
});

/** What the gateway does wrong under the right profile, and what has to be named. */
const faulty: readonly (readonly [CorvidFaults, RegExp])[] = [
  [{ ignores: "run" }, /fills\.parameters\.run: unknown run: returned 10 rows/],
  [{ ignores: "instance" }, /fills\.parameters\.instance: unknown instance: returned 10 rows/],
  [{ ignores: "from" }, /fills\.parameters\.from: .*ignore `window\.since`/],
  [{ ignores: "to" }, /factors\.parameters\.to: .*ignore `until_ns`/],
  [{ ignores: "limit" }, /fills\.parameters\.limit: .*ignores `max_items`/],
  [{ ignores: "page" }, /factors\.pages\.send: .*first page again/],
  [{ ignores: "filter" }, /filters\.symbol: .*returned 10 rows/],
  [{ ties: "query" }, /factors\.columns\.seq: rows with the same time are not in the order/],
  [{ foreignRow: true }, /factors\.columns\.run_id: a row has "2026-01-05b"/],
  [{ ends: "without trailers" }, /fills\.pages: .*without a grpc-status/],
];

describe("a gateway of RPC that does not do as its profile says", () => {
  it.each(faulty)("with %o is told", async (faults, said) => {
    const { check } = await checkedCorvid([], faults);
    expect(told(check!).join("\n")).toMatch(said);
  });

  it("may compress, have new fields, send smaller pages, and be away for a moment", async () => {
    for (const faults of [
      { encoding: "gzip" },
      { newFields: true },
      { pageRows: 2 },
      { once: "reset" },
    ] as const) {
      const { check } = await checkedCorvid([], faults);
      expect(told(check!)).toEqual([]);
    }
  });
});

function told(check: ProfileCheck): string[] {
  return allFindings(check).map(({ key, message, hint }) => `${key}: ${message} ${hint}`);
}
