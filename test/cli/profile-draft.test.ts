import { copyFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readProfile } from "../../src/gateway/profile/load-profile.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { Corvid, corvidProfile } from "../fixtures/foreign/corvid/corvid.ts";
import { ForeignGateway } from "../fixtures/foreign/foreign-gateway.ts";
import { dialects } from "../fixtures/foreign/foreign-gateways.ts";

/** What a gateway's own document says of its paths, beside much else. */
const openapi = {
  openapi: "3.1.0",
  servers: [{ url: "https://borealis.example/api" }],
  paths: {
    "/bots": { get: { parameters: [] } },
    "/bots/{bot}/sessions": { get: { parameters: [] } },
    "/ledger": { get: { parameters: [] } },
    "/tradeHistory": {
      get: {
        parameters: [
          { $ref: "#/components/parameters/Bot" },
          ...["sessionId", "fromMs", "toMs", "pageSize", "pageNumber"].map((name) => ({ name, in: "query" })),
        ],
      },
    },
  },
  components: { parameters: { Bot: { name: "botId", in: "query" } } },
};

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-draft-"));
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

describe("runvault profile draft", () => {
  it("writes guesses with their reasons from an OpenAPI document and rows, and no unit of times", async () => {
    await using gateway = await ForeignGateway.open(dialects.borealis);
    const document = join(folder, "openapi.json");
    await writeFile(document, JSON.stringify(openapi));
    const out = join(folder, "borealis.yaml");
    const line = ["profile", "draft", "--gateway", gateway.url, "--openapi", document, "north/2026-01-05"];
    const { status, stderr } = await runInside([...line, "--out", out]);
    expect(stderr).toContain('replace each "?"');
    expect(status).toBe(0);
    const text = await readFile(out, "utf8");
    expect(text).toContain("base: /api  # the server in the OpenAPI document");
    expect(text).toContain("path: /tradeHistory  # it gave 10 rows");
    expect(text).toContain("instance: botId, run: sessionId, from: fromMs, to: toMs, limit: pageSize");
    expect(text).toContain("{ by: number, send: pageNumber }");
    expect(text).toContain(
      'ts_event: { from: executedAt, unit: "?" }  # 1767571200013 has 13 digits, as ms of these years have',
    );
    expect(text).toContain('side: { from: direction, words: "?" }  # values are 1, -1: say what each means');
    expect(text).toContain("fee_currency: feeCurrency  # such as");
    expect(text).toContain("run_id: run  # no field has the run's id");
    expect(text).toContain('runs: { path: "/bots/{instance}/sessions",');
    expect(text).toContain("# paths of the document that no name says the use of: /ledger");
    const { profile, faults } = await readProfile(out);
    expect(profile).toBeNull();
    expect(faults.map(({ key }) => key)).toEqual(
      expect.arrayContaining(["tables.fills.columns.ts_event.unit", "tables.fills.times.unit"]),
    );
    // what somebody has worked on stays
    const again = await runInside([...line, "--out", out]);
    expect(again.status).toBe(2);
    expect(await readFile(out, "utf8")).toBe(text);
  });

  it("asks the usual paths where there is no document, and writes none that gave nothing", async () => {
    await using gateway = await ForeignGateway.open(dialects.borealis);
    const { status, stdout } = await runInside([
      "profile",
      "draft",
      "--gateway",
      gateway.url,
      "north/2026-01-05",
    ]);
    expect(status).toBe(0);
    expect(stdout).toContain("# no rows were found of fills, orders");
    expect(gateway.requests.length).toBeGreaterThan(7);
    expect(gateway.requests.length).toBeLessThanOrEqual(40);
    const file = join(folder, "nothing.yaml");
    await writeFile(file, stdout);
    expect((await readProfile(file)).profile).toBeNull();
  });

  it("says that a key is wanted where the gateway answers 401, and takes one for a header of its own", async () => {
    const asked: unknown[] = [];
    const server = createServer(({ headers }, response) => {
      asked.push(headers["x-key"]);
      response.writeHead(headers["x-key"] === "5ecret" ? 404 : 401).end("{}");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const line = ["profile", "draft", "--gateway", url, "north/2026-01-05"];
    const { status, stdout, stderr } = await runInside(line);
    expect([status, stdout]).toEqual([9, ""]);
    expect(stderr).toContain("unauthenticated: GET /history/fills");
    expect(stderr).toContain("--token-header");
    expect(asked).toHaveLength(1);
    const known = await runInside([...line, "--token-header", "X-Key"], {
      env: { RUNVAULT_TOKEN: "5ecret" },
    });
    expect(known.status).toBe(0);
    expect(asked.at(-1)).toBe("5ecret");
    server.close();
  });
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
    const { status, stderr } = await runInside([...line, "north/2026-01-05", "--out", out]);
    expect(stderr).toContain('replace each "?"');
    expect(status).toBe(0);
    expect(gateway.calls).toEqual(["ListTrades", "ListSignals"]);
    const text = await readFile(out, "utf8");
    expect(text).toContain("protocol: grpc  # a call was answered by it");
    expect(text).toContain("descriptors: corvid.binpb\n");
    expect(text).toContain("method: corvid.tape.v1.Tape.ListTrades  # by the method's name; it gave 10 rows");
    expect(text).toContain(
      "instance: scope.desk, run: scope.session, from: window.since, to: window.until, limit: max_items }",
    );
    expect(text).toContain("pages: { send: cursor, next: page.next }  # by their names");
    expect(text).toContain("ts_event: at  # a Timestamp, which has its own unit");
    expect(text).toContain(
      'ts_event: { from: at_ns, unit: "?" }  # "1767571200000000013" has 19 digits, as ns',
    );
    expect(text).toContain(
      'side: { from: direction, words: "?" }  # values are DIRECTION_NONE, DIRECTION_BUY, DIRECTION_SELL: say',
    );
    expect(text).toContain("fee: { from: fee, optional: true }  # a row may be without it");
    expect(text).toContain("# methods that no name says the use of: corvid.tape.v1.Tape.ListOddities");
    const { profile, faults } = await readProfile(out);
    expect(profile).toBeNull();
    expect(faults.map(({ key }) => key)).toEqual(
      expect.arrayContaining([
        "rpc.documents.runs.words.STATE_DONE",
        "rpc.documents.storage.tables",
        "rpc.tables.fills.times.from",
        "rpc.tables.factors.times.unit",
        "rpc.tables.factors.largest_limit",
        "tables.fills.columns.side.words",
        "tables.factors.columns.ts_event.unit",
      ]),
    );
    // what somebody knows who has the gateway's documentation
    const known = [
      [
        '{ STATE_UNKNOWN: "?", STATE_LIVE: "?", STATE_DONE: "?" }',
        "{ STATE_LIVE: RUNNING, STATE_DONE: FINISHED }",
      ],
      ['tables: "?"', "tables: { trades: fills, signals: factors }"],
      ['from: "?", to: "?"', "from: inclusive, to: exclusive"],
      ['largest_limit: "?"', "largest_limit: 10"],
      ['direction, words: "?"', "direction, words: { DIRECTION_BUY: BUY, DIRECTION_SELL: SELL }"],
      ['maker, words: "?"', "maker, words: { true: MAKER, false: TAKER }"],
      ['unit: "?"', "unit: ns"],
    ] as const;
    await writeFile(
      out,
      known.reduce((whole, [guess, answer]) => whole.replaceAll(guess, answer), text),
    );
    const checked = await runInside(["-q", "profile", "check", "--gateway", gateway.url, "--profile", out]);
    expect(`${checked.stderr}${checked.stdout}`).toMatch(/^[^\n]*: ok, by \d+ requests\n$/);
    expect(checked.status).toBe(0);
  });

  it("says what a run's method answered where no row came, and leaves its columns open", async () => {
    await using gateway = await Corvid.open();
    const line = ["profile", "draft", "--gateway", gateway.url, "--descriptors", descriptors, "north/none"];
    const { status, stdout } = await runInside(line);
    expect(status).toBe(0);
    expect(stdout).toContain("# by the method's name; it answered not_found: no such session");
    expect(stdout).toContain('price: { from: "?", words: "?" }  # no field looks like it');
  });

  it("refuses what is no descriptor set, a file that is not there, and two ways at once", async () => {
    const line = ["profile", "draft", "--gateway", "http://127.0.0.1:9", "north/2026-01-05"];
    const said = async (...more: string[]) => {
      const { status, stderr } = await runInside([...line, ...more]);
      expect(status).toBe(2);
      return stderr;
    };
    expect(await said("--descriptors", join(folder, "none.binpb"))).toContain("--descriptors");
    await writeFile(join(folder, "odd.binpb"), "syntax");
    expect(await said("--descriptors", join(folder, "odd.binpb"))).toContain("is no descriptor set");
    expect(await said("--descriptors", descriptors, "--openapi", descriptors)).toContain("two ways");
  });
});
