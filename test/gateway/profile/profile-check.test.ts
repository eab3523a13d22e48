// @module-tag slow
import { describe, expect, it } from "vitest";
import { allFindings, type ProfileCheck } from "../../../src/gateway/profile/check/profile-check.ts";
import { checkedProfile } from "../../fixtures/foreign/checked-profile.ts";
import type { Dialect, Faults } from "../../fixtures/foreign/foreign-gateway.ts";
import { type DialectName, dialects } from "../../fixtures/foreign/foreign-gateways.ts";
import { wrongProfiles } from "../../fixtures/foreign/wrong-profiles.ts";

const names = Object.keys(dialects) as DialectName[];
/** Where each gateway's rows are. */
const rowPaths: Readonly<Record<DialectName, readonly RegExp[]>> = {
  acme: [/\/trades\?/],
  borealis: [/^\/api\/tradeHistory\?/],
  corona: [/\/executions\?/],
  dahlia: [/\/trades\.ndjson/, /\/signals\.ndjson/],
  epsilon: [/^\/v1\/trades\?/],
};

describe("the right profile of a foreign gateway", () => {
  it.each(names)("%s is fine, by at most 12 requests a table", async (name) => {
    const { check, requests } = await checkedProfile(name);
    expect(told(check!)).toEqual([]);
    expect(check!.run).toEqual({ instanceId: "north", runId: "2026-01-05" });
    for (const path of rowPaths[name]) {
      const sent = requests.filter((request) => path.test(request)).length;
      expect(sent).toBeGreaterThan(4);
      expect(sent).toBeLessThanOrEqual(12);
    }
    expect(requests).toHaveLength(check!.requests);
  });

  it("shows where each column comes from, and a value as it came and as it is kept", async () => {
    const { check } = await checkedProfile("acme");
    const [fills] = check!.tables;
    const column = (name: string) => fills!.columns.find((one) => one.column === name);
    expect(column("ts_event")).toEqual({
      column: "ts_event",
      from: "time, ms",
      raw: "1767571200013",
      canonical: "1767571200013000000",
      empty: false,
    });
    expect(column("side")).toMatchObject({ from: "side, with words", raw: '"B"', canonical: "BUY" });
    expect(column("portfolio")).toMatchObject({ from: 'always "main"', raw: null, canonical: "main" });
    expect(column("resource_key")).toMatchObject({ from: "resource", canonical: "fills:main" });
    expect(fills!.unused).toContainEqual({ field: "lot", raw: "3", nearest: null });
    expect(check!.none).toEqual(["orders"]);
    expect(check!.notDescribed).toContain("bars");
  });

  it("asks the gateway for what it might not heed, and says what it did", async () => {
    const { check } = await checkedProfile("acme");
    const heeds = Object.fromEntries(check!.tables[0]!.heeds.map(({ what, result }) => [what, result]));
    expect(heeds).toEqual({
      order: "ok",
      "repeated request": "ok",
      limit: "ok",
      "the next page": "ok",
      from: "ok",
      to: "ok",
      "both bounds": "ok",
      "unknown run": "ok",
      "unknown instance": "ok",
      "another run": "ok",
    });
  });

  it("says which proof each table can reach, and why", async () => {
    const reach = async (name: DialectName) => (await checkedProfile(name)).check!.tables[0]!.proof;
    expect(await reach("acme")).toMatchObject({ reach: "exhausted" });
    expect(await reach("epsilon")).toMatchObject({
      reach: "counted",
      why: expect.stringContaining("one row early"),
    });
    expect(await reach("borealis")).toMatchObject({
      reach: "exhausted",
      why: expect.stringMatching(/pages by number: a second pass with another page size/),
    });
    const { check } = await checkedProfile("borealis", { edits: [[" to: toMs,", ""]] });
    expect(check!.tables[0]!.proof.why).toMatch(/pages by number: only for finished runs; a second pass/);
  });
});

/** By the name of a wrong profile, the key that has to be named and what has to be said of it. */
const named: Readonly<Record<string, RegExp>> = {
  "rows in seconds": /columns\.ts_event: .*in ms it is 2026-01-05.*unit: ms/i,
  "rows in microseconds": /columns\.ts_event: .*unit: ms/,
  "no unit": /columns\.ts_event: .*unit: ms/,
  "ts_init in microseconds": /columns\.ts_init: .*unit: ms/,
  "bounds in seconds": /times\.unit: .*finer unit/,
  "every unit microseconds": /documents\.runs\.started: .*unit: ms/,
  "ts_event of the other field": /times\.(?:from|to): /,
  "words of another gateway": /columns\.side: side has the value "B", which is not in `words`/,
  "a word missing": /columns\.side: direction has the value -1/,
  "two words to one value": /liquidity\.words\.take: .*could not be told apart/,
  "a column absent that is there": /columns\.fee_currency: .*field feeCurrency/,
  "a constant over a field": /columns\.account: .*a field account/,
  "an optional field that is not said to be":
    /columns\.fee_currency: .* lack the field feeCcy .*optional: true/,
  "a misspelt field said to be optional": /columns\.fee_currency: .*feeCCY.*feeCcy/,
  "a field of another name": /columns\.price: no row has the field price/,
  "a field's path one too short": /columns\.symbol: .*Did you mean instrument\.symbol/,
  "numbers not said to be exact": /columns\.price: px is a bare number.*numbers: exact/,
  "a seq that is no number": /columns\.seq: id is not a whole number/,
  "a seq that is the same in every row": /columns\.seq: two rows have 3/,
  "the run's id from another field": /columns\.run_id: a row has "fills:main"/,
  "the table's path": /fills\.path: .*status 404/,
  "run and instance swapped in the path": /fills\.path: .*status 404/,
  "the run's parameter": /parameters\.run: unknown run: returned 10 rows/,
  "the instance's parameter": /parameters\.instance: unknown instance: returned 10 rows/,
  "the parameter of from": /parameters\.from: .*ignore `since`/,
  "the parameter of to": /parameters\.to: .*ignore `until`/,
  "the parameter of limit": /parameters\.limit: .*ignores `count`/,
  "a filter that is none": /parameters\.filters\.symbol: .*ignores `ticker`/,
  "no pages where there are some": /pages: .*next: page\.next/,
  "no pages where there are links": /pages: .*by: link/,
  "the cursor's place": /pages\.next: .*Did you mean page\.next/,
  "the cursor's parameter": /pages\.send: .*ignores `token`/,
  "pages from 0": /pages\.first: .*first: 1/,
  "pages by number where they go by offset": /pages\.send: .*belong to the first page or before it/,
  "pages by offset where they go by number": /pages\.send: .*missing between/,
  "the total's place": /pages\.total: .*totalCount/,
  "the rows' place": /rows\.array: .*data\.items \(8 entries\)/,
  "lines where there is an array": /rows: .*array: \[\]/,
  "an array where there are lines": /rows\.array: .*rows: lines/,
  "to said to be exclusive": /times\.to: .*to: inclusive/,
  "to said to be inclusive": /times\.to: .*to: exclusive/,
  "from said to be inclusive": /times\.from: .*from: exclusive/,
  "the oldest said to come first": /order: .*order: descending/,
  "the newest said to come first": /order: .*order: ascending/,
  "a limit that is too large": /largest_limit: pageSize=50 failed: status 400/,
  "the words for a run's status": /runs\.words: .*"done"/,
  "the list of instances": /instances\.id: two instances have the id "Ulm"/,
  "the list of runs": /runs\.list: .*data\.items \(2 entries\)/,
  "counts of another name": /storage\.rows: .*at total/,
  "the ends of the facts swapped": /storage\.first: .*Swap/,
  "a table of another name in the facts": /storage\.tables: no entry is for fills/,
  "a key that is none": /colums.*columns/,
  "a column that is none": /prise.*price/,
  "seq forgotten": /columns\.seq: no row has the field seq/,
  "a run that is not there by that name": /fills\.path: .*status 404/,
};

describe("a wrong profile", () => {
  it.each(wrongProfiles.filter(({ human }) => human === undefined))(
    "$name: the mistake is named",
    async ({ name, gateway, edits }) => {
      const { check, faults } = await checkedProfile(gateway, { edits });
      const all = [
        ...faults.map(({ message, hint }) => `${message} ${hint}`),
        ...(check === null ? [] : told(check)),
      ];
      expect(named[name], `what is to be said of ${name}`).toBeDefined();
      expect(all.join("\n")).toMatch(named[name]!);
      for (const table of check?.tables ?? []) expect(table.requests).toBeLessThanOrEqual(12);
    },
  );
});

it("a side that nothing which reads the archive knows is told, with words or without", async () => {
  const side = "side: { from: side, words: { B: BUY, S: SELL } }";
  const none = await checkedProfile("acme", { edits: [[side, "side: side"]] });
  expect(told(none.check!)).toContainEqual(
    expect.stringMatching(
      /columns\.side: side has the value "B", but side must be BUY or SELL .*words: \{ "B": BUY \}/,
    ),
  );
  const other = await checkedProfile("acme", { edits: [[side, side.replace("BUY", "LONG")]] });
  expect(told(other.check!)).toEqual([
    expect.stringMatching(
      /columns\.side: side has the value "B", which `words` makes "LONG", but side must be BUY or SELL/,
    ),
  ]);
});

it("a gateway that wants a key is said to want one, not another path", async () => {
  const { check } = await checkedProfile("acme", { edits: [["X-Key:", "X-Kee:"]] });
  expect(told(check!)).toContainEqual(
    expect.stringMatching(
      /^documents\.instances\.path: instances: the gateway answered with status 401 Set --token-file .*, or the profile's headers\.$/,
    ),
  );
});

/** What a gateway does wrong under the right profile, and what has to be named. */
const faulty: readonly (readonly [DialectName, Faults, RegExp])[] = [
  ["borealis", { ignores: "run" }, /parameters\.run: unknown run/],
  ["borealis", { ignores: "instance" }, /parameters\.instance: unknown instance/],
  ["acme", { ignores: "from" }, /parameters\.from: /],
  ["corona", { ignores: "to" }, /parameters\.to: /],
  ["epsilon", { ignores: "limit" }, /parameters\.limit|pages\.size/],
  ["acme", { ignores: "page" }, /pages\.send: .*first page again/],
  ["corona", { ignores: "page" }, /pages: .*first page again/],
  ["borealis", { ignores: "page" }, /pages\.send: .*first page again/],
  ["epsilon", { ignores: "page" }, /pages\.send: .*first page again/],
  ["epsilon", { ignores: "filter" }, /parameters\.filters\.symbol: /],
  ["acme", { foreignRow: true }, /columns\.run_id: a row has "2026-01-05b"/],
  ["corona", { ties: "query" }, /columns\.seq: rows with the same time are not in the order/],
  ["acme", { otherOrigin: true }, /pages/],
  ["corona", { otherOrigin: true }, /at an address of another server/],
  ["acme", { wrongType: true }, /rows\.media_types: the answer is text\/html/],
];

describe("a gateway that does not do as its profile says", () => {
  it.each(faulty)("%s with %o is told", async (name, faults, wanted) => {
    const { check } = await checkedProfile(name, { faults });
    expect(told(check!).join("\n")).toMatch(wanted);
  });

  it("may send rows of one time in any order", async () => {
    const { check } = await checkedProfile("acme", { faults: { ties: "query" } });
    expect(told(check!)).toEqual([]);
  });
});

/** A gateway that takes nine decimals of RFC 3339 and reads three, as many do whose rows have no more. */
const readsThree: Dialect = {
  ...dialects.epsilon,
  grainNs: 1_000_000n,
  rowsAsked(url) {
    const cut = new URL(url);
    for (const name of ["since", "until"]) {
      const text = url.searchParams.get(name);
      if (text !== null) cut.searchParams.set(name, text.replace(/(\.\d{3})\d+Z$/, "$1Z"));
    }
    return dialects.epsilon.rowsAsked(cut);
  },
};
const toMilliseconds = ["times: { unit: rfc3339,", "times: { unit: { rfc3339: ms },"] as const;

it("a gateway that does not read the last decimals of a bound is told, and the profile can say so", async () => {
  const { check } = await checkedProfile("epsilon", { dialect: readsThree });
  expect(told(check!)).toEqual([
    expect.stringMatching(
      /fills\.times\.unit: .*until=\S+000001Z excludes the rows .*unit: \{ rfc3339: ms \}/,
    ),
  ]);
  const edits = [toMilliseconds];
  const right = await checkedProfile("epsilon", { dialect: readsThree, edits });
  expect(told(right.check!)).toEqual([]);
  expect(right.requests.join(" ")).toMatch(/until=[^&]*\.\d{3}Z/);
  const wrongWord = await checkedProfile("epsilon", {
    edits: [["unit: rfc3339,", "unit: { rfc3339: days },"]],
  });
  expect(wrongWord.faults).toMatchObject([
    { message: expect.stringContaining("must be one of ns, us, ms, s") },
  ]);
});

/** The same gateway with each bound moved; what it is asked for is half-open by then. */
const moving = (dialect: Dialect, from: (ns: bigint) => bigint, to: (ns: bigint) => bigint): Dialect => ({
  ...dialect,
  rowsAsked(url) {
    const asked = dialect.rowsAsked(url);
    const moved = (ns: bigint | undefined, by: (ns: bigint) => bigint) => (ns === undefined ? ns : by(ns));
    return asked && { ...asked, from: moved(asked.from, from), to: moved(asked.to, to) };
  },
});
const same = (ns: bigint) => ns;
const second = 1_000_000_000n;
const millisecond = 1_000_000n;
const msOf = (ns: bigint) => (ns / millisecond) * millisecond;
const ends = (from: string, to: string) =>
  [["from: inclusive, to: exclusive", `from: ${from}, to: ${to}`]] as const;

// archive said to ask `profile check`, and that found nothing
it.each([
  [
    "an inclusive end takes the whole second",
    "dahlia",
    ends("inclusive", "inclusive"),
    [moving(dialects.dahlia, same, (ns) => ns + second), moving(dialects.dahlia, same, (ns) => ns + 1n)],
    /^tables\.fills\.times\.to: .*end=\d+ includes the later row of \S+/,
  ],
  [
    "an exclusive beginning leaves the whole second out",
    "dahlia",
    ends("exclusive", "exclusive"),
    [moving(dialects.dahlia, (ns) => ns + second, same), moving(dialects.dahlia, (ns) => ns + 1n, same)],
    /^tables\.fills\.times\.from: .*begin=\d+ excludes the later row of \S+/,
  ],
  [
    "microseconds are compared as milliseconds",
    "corona",
    [],
    [moving(dialects.corona, msOf, (ns) => msOf(ns) + millisecond), dialects.corona],
    /^tables\.fills\.times\.from: .*since=\d+ includes the rows of \d+: the gateway compares times in a coarser unit/,
  ],
] as const)(
  "a gateway of which %s is told, and one that compares whole times is not",
  async (_, name, edits, [coarse, exact], says) => {
    const { check } = await checkedProfile(name, { dialect: coarse, edits });
    expect(told(check!)).toContainEqual(expect.stringMatching(says));
    expect(told((await checkedProfile(name, { dialect: exact, edits })).check!)).toEqual([]);
  },
);

it.each([
  [
    "a cursor",
    { next_cursor: "b2" },
    /documents\.runs: 2 entries received, but there is a next page in next_cursor: b2/,
  ],
  ["a total", { total: 7 }, /documents\.runs: 2 entries received, but total says 7/],
])("a list of runs that goes on behind its first page is told: by %s", async (_, more, wanted) => {
  const dialect: Dialect = {
    ...dialects.epsilon,
    document: (url, world) => {
      const document = dialects.epsilon.document(url, world);
      return document && url.pathname === "/v1/runs" ? { ...document, ...more } : document;
    },
  };
  const { check } = await checkedProfile("epsilon", { dialect });
  expect(told(check!).join("\n")).toMatch(wanted);
});

it("what is wrong with a list is told ahead of what could not be checked for it", async () => {
  const { check } = await checkedProfile("acme", { edits: [["X-Key:", "X-Other:"]] });
  expect(told(check!)).toEqual([
    expect.stringMatching(/documents\.instances\.path: .*401/),
    expect.stringMatching(/no run was found/),
  ]);
});

it("a word of runvault's own in another spelling is told", async () => {
  const dialect: Dialect = {
    ...dialects.epsilon,
    rows(page, url) {
      const reply = dialects.epsilon.rows(page, url);
      const rows = JSON.parse(String(reply.body)) as object[];
      return {
        ...reply,
        body: JSON.stringify(rows.map((row) => ({ ...row, kind: "Cancelled", type: "PEG" }))),
      };
    },
  };
  const { check } = await checkedProfile("epsilon", { dialect, edits: [["  fills:", "  orders:"]] });
  const all = told(check!).join("\n");
  expect(all).toMatch(/orders\.columns\.kind: .*which runvault calls CANCELED.*"Cancelled": CANCELED/);
  expect(all).not.toMatch(/columns\.type/);
});

it("a word in quotes where the gateway sends none is told", async () => {
  const edits = [["{ true: MAKER, false: TAKER }", '{ "true": MAKER, "false": TAKER }']] as const;
  const { check } = await checkedProfile("acme", { edits });
  expect(told(check!)[0]).toMatch(/not in `words` \("true", "false"\).*without quotes/);
});

function told(check: ProfileCheck): string[] {
  return allFindings(check).map(({ key, message, hint }) => `${key}: ${message} ${hint}`);
}
