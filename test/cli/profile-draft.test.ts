import { chmod, copyFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, test } from "vitest";
import { findLists } from "../../src/gateway/profile/draft/seen/find-lists.ts";
import { readProfile } from "../../src/gateway/profile/load-profile.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { Corvid, corvidProfile } from "../fixtures/foreign/corvid/corvid.ts";
import { ForeignGateway } from "../fixtures/foreign/foreign-gateway.ts";
import { type DialectName, dialects } from "../fixtures/foreign/foreign-gateways.ts";
import { foreignOpenApi } from "../fixtures/foreign/foreign-openapi.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-draft-"));
  await copyFile(join(dirname(corvidProfile), "../acme.key"), join(folder, "acme.key"));
  await chmod(join(folder, "acme.key"), 0o600);
  // what a gateway wants of everyone, before anything else is known of it
  await writeFile(
    join(folder, "access.yaml"),
    "headers: { X-Client: { env: ACME_CLIENT }, X-Key: { file: acme.key } }\nrest: { base: /v2 }\nrows: '?'\n",
  );
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

const env = { ACME_CLIENT: "runvault-tests" };

/** Every guess of a draft taken for right. */
function confirmed(text: string): string {
  return text.replaceAll(/"(\w+)\?"/g, "$1");
}

/** What is wrong or open in a draft once each guess is confirmed, and what a user makes of it. */
const mended: readonly (readonly [DialectName, readonly (readonly [drafted: string, right: string])[]])[] = [
  [
    "acme",
    [
      ['portfolio: "?"', "portfolio: { value: main }"],
      // a row that the draft did not see is without
      ["fee_currency: feeCcy", "fee_currency: { from: feeCcy, optional: true }"],
    ],
  ],
  ["borealis", [['words: { 3: "?" }', "words: { 3: FINISHED }"]]],
  ["corona", [["to: exclusive }", "to: inclusive }"]]],
  ["dahlia", [["times: { unit: ns", "times: { unit: s"]]],
  ["epsilon", [["largest_limit: 5", "largest_limit: 9"]]],
];

describe("runvault profile draft", () => {
  it.each(mended)(
    "begins a profile of %s that is right once it is confirmed, but for few lines",
    async (name, edits) => {
      await using gateway = await ForeignGateway.open(dialects[name]);
      const document = join(folder, `${name}.json`);
      await writeFile(document, JSON.stringify(foreignOpenApi(name)));
      const out = join(folder, `${name}.yaml`);
      const line = ["profile", "draft", "--gateway", gateway.url, "--openapi", document, "--out", out];
      if (name === "acme") line.push("--profile", join(folder, "access.yaml"));
      // no route lists the runs of this one
      if (name === "dahlia") line.push("north/2026-01-05");
      const { status, stderr } = await runInside(line, { env });
      expect(stderr).toBe(
        `wrote ${out}: confirm or correct each value that ends in ?, then check it with runvault profile check\n`,
      );
      expect(status).toBe(0);
      expect(gateway.requests.length).toBeLessThan(10);
      if (name === "epsilon") expect(await readFile(out, "utf8")).toContain('tables: { trades: "fills?" }');
      const text = await readFile(out, "utf8");
      // no unit of a count is anything but a guess to confirm
      expect(text.match(/unit: (?!"\w*\?")\S+/g) ?? []).toEqual(
        expect.not.arrayContaining([expect.stringMatching(/ns|us|ms|s$/)]),
      );
      const { profile, faults } = await readProfile(out);
      expect(profile).toBeNull();
      expect(faults.every(({ message }) => /is still (?:an unconfirmed guess|"\?")/.test(message))).toBe(
        true,
      );
      let whole = confirmed(text);
      for (const [drafted, right] of edits) {
        expect(whole).toContain(drafted);
        whole = whole.replaceAll(drafted, right);
      }
      await writeFile(out, whole);
      const check = ["-q", "profile", "check", "--gateway", gateway.url, "--profile", out];
      const checked = await runInside(check, { env });
      expect(`${checked.stderr}${checked.stdout}`).toMatch(/^[^\n]*: ok, \d+ requests\n$/);
    },
  );

  it("gives the reason of each guess, and never replaces what somebody has worked on", async () => {
    await using gateway = await ForeignGateway.open(dialects.borealis);
    const document = join(folder, "reasons.json");
    const openapi = foreignOpenApi("borealis") as { paths: Record<string, object> };
    openapi.paths["/ledger"] = { get: {} };
    openapi.paths["/orders"] = { get: { parameters: [{ name: "sessionId", in: "query" }] } };
    await writeFile(document, JSON.stringify(openapi));
    const out = join(folder, "reasons.yaml");
    const line = ["profile", "draft", "--gateway", gateway.url, "--openapi", document, "north/2026-01-05"];
    expect((await runInside([...line, "--out", out])).status).toBe(0);
    const text = await readFile(out, "utf8");
    expect(text).toContain("base: /api  # the server in the OpenAPI document");
    expect(text).toContain("path: /bots  # it lists north, south");
    expect(text).toContain("runs: sessions  # by its name: the ids of its runs");
    expect(text).toContain(
      'unit: "ms?"  # 1767571140000 has 13 digits, like current times in ms: confirm it',
    );
    expect(text).toContain("path: /tradeHistory  # it returned 10 rows");
    expect(text).toContain("instance: botId, run: sessionId, from: fromMs, to: toMs, limit: pageSize");
    expect(text).toContain("{ by: number, send: pageNumber, total: totalCount }");
    expect(text).toContain('ts_event: { from: executedAt, unit: "ms?" }  # 1767571200013 has 13 digits');
    expect(text).toContain(
      'side: { from: direction, words: { 1: "BUY?", -1: "SELL?" } }  # values seen are 1, -1',
    );
    expect(text).toContain("run_id: run  # no field has the run's id");
    // of orders the document has a path, and the gateway no row
    expect(text).toMatch(
      /orders:\n {4}path: \/orders {2}# by its name; it returned no rows, so the lines below are guesses/,
    );
    expect(text).toContain('columns: "?"  # no row was seen');
    expect(text).toContain("# other paths in the document, with names that do not show their use: /ledger");
    const again = await runInside([...line, "--out", out]);
    expect(again.status).toBe(2);
    expect(await readFile(out, "utf8")).toBe(text);
  });

  it("finds lists, a run and its rows at usual paths where there is no document", async () => {
    await using gateway = await ForeignGateway.open(dialects.acme);
    const line = ["profile", "draft", "--gateway", gateway.url, "--profile", join(folder, "access.yaml")];
    const { status, stdout, stderr } = await runInside(line, { env });
    expect([status, stderr]).toEqual([0, ""]);
    expect(stdout).toContain("headers: { X-Client: { env: ACME_CLIENT }, X-Key: { file:");
    expect(stdout).not.toMatch(/runvault-tests|acme-key-of-tests/);
    expect(stdout).toContain('path: "/desks/{instance}/executions"  # it lists 2026-01-05, 2026-01-05b');
    expect(stdout).toContain('path: "/executions/{run}/trades"  # it returned 8 rows');
    expect(stdout).toContain(
      'from: "from?", to: "to?", limit: "limit?" }  # usual names; rows cannot confirm them',
    );
    expect(stdout).toContain("# no path was found for orders, bars");
    expect(gateway.requests.length).toBeLessThanOrEqual(60);
  });

  it.each([
    [{ next: "" }, 'pages: "none?"  # page.next is empty here'],
    [
      { offset: 0, total: 99 },
      'pages: { by: offset, send: "offset?", total: page.total }  # page.total says 99',
    ],
    [{ next: "abc", total: 99 }, 'pages: { by: cursor, send: "next?", next: page.next, total: page.total }'],
    // so many are on this page
    [{ next: "abc", total: 8 }, 'pages: { by: cursor, send: "next?", next: page.next }'],
    [{ total: 99 }, 'pages: "?"  # page.total says 99, but 8 rows came'],
  ])("does not take an answer for all there is that has %o beside its rows", async (page, wanted) => {
    await using gateway = await ForeignGateway.open({
      ...dialects.acme,
      rows(rows, url) {
        const reply = dialects.acme.rows(rows, url);
        return { ...reply, body: JSON.stringify({ ...JSON.parse(String(reply.body)), page }) };
      },
    });
    const line = ["profile", "draft", "--gateway", gateway.url, "--profile", join(folder, "access.yaml")];
    expect((await runInside(line, { env })).stdout).toContain(wanted);
  });

  it("says what to do where no list leads to a run, and drafts what a document alone says", async () => {
    await using gateway = await ForeignGateway.open(dialects.corona);
    const bare = await runInside(["profile", "draft", "--gateway", gateway.url]);
    expect([bare.status, bare.stdout]).toEqual([2, ""]);
    expect(bare.stderr).toMatch(/no run found to request rows from.*\n.*as INSTANCE\/RUN.*--openapi/);
    expect(bare.stderr).toContain("Paths tried for lists: /history/instances,");
    const document = join(folder, "alone.json");
    await writeFile(document, JSON.stringify(foreignOpenApi("dahlia")));
    const line = ["profile", "draft", "--gateway", gateway.url, "--openapi", document];
    const { status, stdout, stderr } = await runInside(line);
    expect(status).toBe(0);
    expect(stderr).toContain("the gateway's lists lead to no run, so no rows were seen");
    expect(stdout).toContain('instances: { path: /models, list: "?", id: "?" }');
    expect(stdout).toContain('given: "?"');
    expect(stdout).toContain('path: "/dump/{run}/signals.ndjson"  # by its name; it returned no rows');
  });

  it("takes rows of a finished run that has some, with keys lent to it, and shows no secret that comes back", async () => {
    const asked: string[] = [];
    const runs = [
      { id: "goes-on", state: "running", endedAt: null },
      { id: "empty", state: "done", endedAt: "2026-01-05T01:00:00Z" },
      { id: "whole", state: "done", endedAt: "2026-01-05T02:00:00Z" },
    ];
    const server = createServer(({ url }, response) => {
      const { pathname, searchParams } = new URL(url!, "http://localhost");
      asked.push(pathname);
      const run = /^\/bots\/a1\/runs\/([^/]+)\/fills$/.exec(pathname)?.[1];
      const key = searchParams.get("api_key");
      const rows =
        run === "empty"
          ? []
          : [{ run, time: 1767571200013, price: "1.5", note: `asked with ${key}`, "venue?": "X" }];
      const answers: Record<string, unknown> = { "/bots": [{ id: "a1" }], "/bots/a1/runs": { runs } };
      const answer = run === undefined ? answers[pathname] : { rows };
      response.writeHead(key !== "5ecret-of-keys" ? 401 : answer === undefined ? 404 : 200, {
        "content-type": "application/json",
      });
      response.end(JSON.stringify(answer ?? {}));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    await writeFile(
      join(folder, "keys.yaml"),
      "rest: { keys: { api_key: { env: KEY, in_address: true } } }\n",
    );
    const line = ["profile", "draft", "--gateway", url];
    const refused = await runInside(line);
    expect([refused.status, refused.stdout]).toEqual([9, ""]);
    expect(refused.stderr).toContain("unauthenticated: GET /history/instances");
    expect(refused.stderr).toContain("--token-header");
    expect(asked).toHaveLength(1);
    const lent = [...line, "--profile", join(folder, "keys.yaml")];
    const { status, stdout } = await runInside(lent, { env: { KEY: "5ecret-of-keys" } });
    server.close();
    expect(status).toBe(0);
    expect(stdout).toContain('run_id: { from: run }  # such as "whole"; it is the id that was requested');
    expect(stdout).toContain('words: { running: "RUNNING?", done: "FINISHED?" }');
    expect(stdout).toContain("keys: { api_key: { env: KEY, in_address: true } }");
    // with a ? at its end it would be a guess
    expect(stdout).toContain('venue: ["venue?"]  # such as "X"; by its name');
    expect(stdout).not.toContain("5ecret");
    expect(asked.filter((path) => path.includes("goes-on"))).toEqual([]);
  });
});

test("no run is asked for whose id cannot stand in an address", async () => {
  const about = { request: "GET /", mediaType: "application/json", headers: {}, cut: false };
  const text = '[{"id":"a1","runs":["..",".","","r1",true,1.5]}]';
  const asker = {
    ask: async ({ path }: { readonly path: string }) =>
      path === "/bots" ? { ...about, status: 200, text } : undefined,
  };
  const { runs } = await findLists(asker, undefined, undefined);
  expect(runs).toEqual([{ instanceId: "a1", runId: "r1" }]);
});

describe("runvault profile draft --descriptors", () => {
  const descriptors = join(dirname(corvidProfile), "corvid.binpb");

  it("writes the part about RPC from descriptors and rows, which passes the check once each guess is settled", async () => {
    await using gateway = await Corvid.open();
    await copyFile(descriptors, join(folder, "corvid.binpb"));
    const out = join(folder, "corvid.yaml");
    const line = [
      "profile",
      "draft",
      "--gateway",
      gateway.url,
      "--descriptors",
      join(folder, "corvid.binpb"),
    ];
    const { status, stderr } = await runInside([...line, "--out", out]);
    expect(stderr).toContain("confirm or correct each value that ends in ?");
    expect(status).toBe(0);
    expect(gateway.calls).toEqual([
      "ListDesks",
      "ListSessions",
      "ListTrades",
      "ListTrades",
      "ListSignals",
      "ListSignals",
      "CountRows",
    ]);
    const text = await readFile(out, "utf8");
    expect(text).toContain("protocol: grpc  # a call succeeded with it");
    expect(text).toContain("descriptors: corvid.binpb\n");
    expect(text).toContain(
      "method: corvid.tape.v1.Tape.ListTrades  # by the method's name; it returned 10 rows",
    );
    expect(text).toContain(
      "instance: scope.desk, run: scope.session, from: window.since, to: window.until, limit: max_items }",
    );
    expect(text).toContain("pages: { send: cursor, next: page.next }  # by their names");
    expect(text).toContain("ts_event: at  # a Timestamp, which has its own unit");
    expect(text).toContain(
      'ts_event: { from: at_ns, unit: "ns?" }  # "1767571200000000013" has 19 digits, like current times in ns',
    );
    expect(text).toContain(
      'side: { from: direction, words: { DIRECTION_BUY: "BUY?", DIRECTION_SELL: "SELL?" } }  # values are DIRECTION_NONE,',
    );
    expect(text).toContain("fee: { from: fee, optional: true }  # rows may lack it");
    expect(text).toContain(
      "# other methods, with names that do not show their use: corvid.tape.v1.Tape.ListOddities",
    );
    const { profile, faults } = await readProfile(out);
    expect(profile).toBeNull();
    expect(faults.map(({ key }) => key)).toEqual(
      expect.arrayContaining([
        "rpc.documents.runs.words.STATE_DONE",
        "rpc.documents.storage.tables.trades",
        "rpc.tables.fills.times.from",
        "rpc.tables.factors.times.unit",
        "tables.fills.columns.side.words.DIRECTION_BUY",
        "tables.factors.columns.ts_event.unit",
      ]),
    );
    // what somebody knows who has the gateway's documentation
    expect(text).toContain('tables: { trades: "fills?", signals: "factors?" }');
    await writeFile(out, confirmed(text));
    const checked = await runInside(["-q", "profile", "check", "--gateway", gateway.url, "--profile", out]);
    expect(`${checked.stderr}${checked.stdout}`).toMatch(/^[^\n]*: ok, \d+ requests\n$/);
    expect(checked.status).toBe(0);
  });

  it("says what a run's method answered where no row came, and leaves its columns open", async () => {
    await using gateway = await Corvid.open();
    const line = ["profile", "draft", "--gateway", gateway.url, "--descriptors", descriptors, "north/none"];
    const { status, stdout } = await runInside(line);
    expect(status).toBe(0);
    expect(stdout).toContain("# by the method's name; it answered not_found: no such session");
    expect(stdout).toContain("price: px.value  # no row was seen; px often means price");
  });

  it("refuses what is not a descriptor set, a file that is not there, and two ways at once", async () => {
    const line = ["profile", "draft", "--gateway", "http://127.0.0.1:9", "north/2026-01-05"];
    const said = async (...more: string[]) => {
      const { status, stderr } = await runInside([...line, ...more]);
      expect(status).toBe(2);
      return stderr;
    };
    expect(await said("--descriptors", join(folder, "none.binpb"))).toContain("--descriptors");
    await writeFile(join(folder, "odd.binpb"), "syntax");
    expect(await said("--descriptors", join(folder, "odd.binpb"))).toContain("is not a descriptor set");
    expect(await said("--descriptors", descriptors, "--openapi", descriptors)).toContain(
      "different protocols",
    );
  });
});
