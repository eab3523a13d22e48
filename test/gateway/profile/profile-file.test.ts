import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { builtInContract } from "../../../src/gateway/contract.ts";
import { loadProfile, readProfile } from "../../../src/gateway/profile/load-profile.ts";
import type { Profile } from "../../../src/gateway/profile/profile.ts";
import { profileJsonSchema } from "../../../src/gateway/profile/profile-json-schema.ts";
import { readProfileSecrets } from "../../../src/gateway/profile/profile-secrets.ts";
import { profileText } from "../../../src/gateway/profile/profile-text.ts";
import { RunvaultError } from "../../../src/model/error.ts";
import { tableNames, tables } from "../../../src/model/profile/table.ts";
import { inProject } from "../../fixtures/command/project.ts";

const acme = inProject("test/gateway/profile/acme.yaml");

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-test-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function write(name: string, text: string): Promise<string> {
  const path = join(folder, name);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
  return path;
}

const load = async (text: string) => await loadProfile(await write("profile.yaml", text));

/** What is wrong, in one line each. */
async function toldOf(path: string): Promise<readonly string[]> {
  const { profile, faults } = await readProfile(path);
  expect(profile === null).toBe(faults.length > 0);
  return faults.map(({ file, line, column, message }) =>
    `${file}:${line}:${column}: ${message}`.replaceAll(`${folder}/`, ""),
  );
}

const head = "profile: 1\nname: acme\n";
const fills = 'tables:\n  fills:\n    path: "/runs/{run}/fills"\n';

describe("the example", () => {
  test("comes to requests and a map", async () => {
    const profile = await loadProfile(acme);
    expect(profile).toMatchObject({
      name: "acme",
      file: acme,
      headers: [
        { name: "X-Client", from: { env: "ACME_CLIENT" } },
        { name: "X-Key", from: { file: join(dirname(acme), "acme.key") } },
      ],
      keys: [],
      rpc: undefined,
      none: ["orders"],
      described: ["fills"],
    });
    const times = { unit: "ms", from: "inclusive", to: "inclusive" };
    const none = { from: undefined, to: undefined, limit: undefined, filters: {}, fixed: {} };
    expect(profile.rest).toEqual({
      base: "/v2",
      documents: {
        instances: {
          path: "/desks",
          method: "GET",
          parameters: { ...none, instance: undefined, run: undefined },
          times: { unit: "ns", from: "inclusive", to: "exclusive" },
          list: ["data", "desks"],
          id: ["name"],
          runs: undefined,
        },
        runs: {
          path: "/desks/{instance}/executions",
          method: "GET",
          parameters: { ...none, instance: undefined, run: undefined },
          times: { unit: "ns", from: "inclusive", to: "exclusive" },
          list: ["data", "items"],
          id: ["executionId"],
          started: ["openedAt"],
          ended: ["closedAt"],
          unit: "rfc3339",
          status: ["state"],
          words: { done: "FINISHED", died: "FAILED", live: "RUNNING" },
          final: undefined,
          storageVersion: undefined,
        },
        facts: undefined,
        summary: {
          path: "/executions/{run}",
          method: "GET",
          parameters: { ...none, instance: "desk", run: undefined },
          times: { unit: "ns", from: "inclusive", to: "exclusive" },
        },
        resources: undefined,
        instance: undefined,
        given: {},
      },
      tables: {
        fills: {
          path: "/executions/{run}/trades",
          method: "GET",
          parameters: {
            instance: "desk",
            run: undefined,
            from: "after",
            to: "before",
            limit: "perPage",
            filters: {},
            fixed: {},
          },
          times,
          pages: { by: "cursor", send: "cursor", next: { body: ["page", "next"] } },
          rows: { form: "array", path: ["data", "items"], mediaTypes: ["application/json"] },
          order: "ascending",
          largestLimit: 5000,
        },
      },
      errors: {
        code: ["error", "type"],
        codes: {
          unknown_execution: "run_not_found",
          slow_down: "rate_limited",
          no_history: "history_unavailable",
        },
      },
    });
    const field = (...path: string[]) => ({ kind: "field", path });
    expect(profile.maps).toEqual({
      fills: {
        numbers: "exact",
        fields: "keep",
        ties: "bytes",
        columns: {
          run_id: field("executionId"),
          instance_id: { kind: "instance" },
          seq: { kind: "derived" },
          ts_event: { ...field("time"), unit: "ms" },
          ts_init: { ...field("time"), unit: "ms" },
          resource_key: { kind: "absent" },
          account: field("acct"),
          portfolio: { kind: "constant", text: "main" },
          venue: field("instrument", "exchange"),
          symbol: field("instrument", "symbol"),
          trade_id: field("trade_id"),
          client_order_id: field("client_order_id"),
          venue_order_id: field("venue_order_id"),
          side: {
            ...field("side"),
            words: [
              { wire: "B", column: "BUY" },
              { wire: "S", column: "SELL" },
            ],
          },
          price: field("px"),
          quantity: field("qty"),
          fee: field("fee"),
          fee_currency: { ...field("feeCcy"), optional: true },
          liquidity: {
            ...field("maker"),
            words: [
              { wire: true, column: "MAKER" },
              { wire: false, column: "TAKER" },
            ],
          },
        },
        dropped: [],
      },
    });
    expect(Object.keys(profile.maps.fills!.columns)).toEqual(
      tables.find(({ name }) => name === "fills")!.columns.map(({ name }) => name),
    );
  });
});

describe("the default profile", () => {
  test("is made of the tables that the code itself reads, and its rows skip the normaliser", async () => {
    const profile = await loadProfile("default");
    expect(profile.maps).toEqual({});
    expect(profile.described).toEqual(tableNames);
    for (const { name, filters } of tables) {
      const route = profile.rest!.tables[name]!;
      expect(route.path).toBe(builtInContract.paths.tables[name]);
      expect(Object.keys(route.parameters.filters)).toEqual(filters);
      expect(route.rows).toEqual({ form: "lines", mediaTypes: [builtInContract.mediaTypes.rows] });
    }
    expect(profile.rest!.errors.codes.history_unavailable).toBe("history_unavailable");
  });

  test("is what a profile starts from that extends it", async () => {
    const profile = await load(
      `${head}extends: default\ntables:\n  fills: { path: /trades }\n  orders: none\n`,
    );
    const { rest, ...others } = await loadProfile("default");
    expect(profile).toMatchObject({ maps: {}, none: ["orders"] });
    expect(profile.described).toEqual(others.described.filter((name) => name !== "orders"));
    expect(profile.rest!.tables.fills).toEqual({ ...rest!.tables.fills, path: "/trades" });
    expect(profile.rest!.documents).toEqual(rest!.documents);
  });

  test("loses no row's map to what it extends: a column that is named has its table normalised", async () => {
    const profile = await load(`${head}extends: default\ntables: { fills: { columns: { price: px } } }\n`);
    expect(Object.keys(profile.maps)).toEqual(["fills"]);
    expect(profile.maps.fills!.columns.price).toEqual({ kind: "field", path: ["px"] });
    expect(profile.maps.fills!.columns.fee).toEqual({ kind: "field", path: ["fee"] });
    const array = await load(`${head}extends: default\nrest: { rows: array }\n`);
    expect(Object.keys(array.maps)).toEqual(tableNames);
  });
});

describe("rest", () => {
  test("holds for all tables, and a table's own replaces it key by key", async () => {
    const { rest } = await load(`${head}rest:
  method: POST
  parameters: { run: runId, from: after, to: before, limit: size, filters: { symbol: sym }, fixed: { v: 2 } }
  times: { unit: s, to: inclusive }
  pages: { by: offset, send: skip }
  largest_limit: 100
tables:
  fills:
    path: /fills
    parameters: { from: since, limit: none, filters: { symbol: none, venue: exchange } }
    times: { unit: us }
    pages: none
    largest_limit: none
  equity: { path: "/{run}/equity" }
`);
    expect(rest!.tables.fills).toMatchObject({
      method: "POST",
      parameters: { run: "runId", from: "since", to: "before", limit: undefined, fixed: { v: "2" } },
      times: { unit: "us", from: "inclusive", to: "inclusive" },
      pages: { by: "none" },
      largestLimit: undefined,
    });
    expect(rest!.tables.fills!.parameters.filters).toEqual({ venue: "exchange" });
    expect(rest!.tables.equity).toMatchObject({
      parameters: { run: undefined, from: "after", limit: "size", filters: {} },
      pages: { by: "offset", send: "skip", size: "size", total: undefined },
      largestLimit: 100,
    });
  });
});

describe("columns", () => {
  test("are fields of names with dots, of words for numbers, of what is called as a keyword", async () => {
    const { maps } = await load(`${head}${fills}    columns:
      symbol: [instrument, "code.iso"]
      trade_id: { from: run }
      side: { from: side, words: { 1: BUY, "2": SELL, true: "", -0.5: X }, lossy: true }
      fee: { value: "-000.500" }
      ts_init: { value: 0 }
`);
    expect(maps.fills!.columns).toMatchObject({
      symbol: { path: ["instrument", "code.iso"] },
      trade_id: { kind: "field", path: ["run"] },
      side: {
        words: [
          { wire: 1, column: "BUY" },
          { wire: "2", column: "SELL" },
          { wire: true, column: "" },
          { wire: -0.5, column: "X" },
        ],
        lossy: true,
      },
      fee: { kind: "constant", text: "-0.5" },
      ts_init: { kind: "constant", text: "0" },
    });
  });

  test("share a field that is named for each", async () => {
    const { maps } = await load(
      `${head}${fills}    columns: { ts_event: time, ts_init: time, symbol: venue, venue: venue }\n`,
    );
    expect(maps.fills!.columns.symbol).toEqual(maps.fills!.columns.venue);
  });

  test("of one table stand before those of all", async () => {
    const { maps } = await load(
      `${head}rows: { columns: { price: px, symbol: sym } }\n${fills}    columns: { price: paid }\n`,
    );
    expect(maps.fills!.columns.price).toEqual({ kind: "field", path: ["paid"] });
    expect(maps.fills!.columns.symbol).toEqual({ kind: "field", path: ["sym"] });
  });
});

describe("a profile that extends another", () => {
  test("replaces a column, pages and the form of rows as a whole", async () => {
    await write(
      "base/base.yaml",
      `profile: 1
name: base
headers: { X-Key: { file: base.key }, X-Client: { env: CLIENT } }
rest: { pages: { by: cursor, send: cursor, next: page.next }, rows: { array: data, media_types: [application/vnd.a+json] } }
${fills}    columns: { side: { from: side, optional: true, words: { B: BUY } }, price: px }
`,
    );
    const path = await write(
      "acme.yaml",
      `${head}extends: base/base.yaml
headers: { X-Key: { env: ACME } }
rest: { pages: { by: link }, rows: { array: items } }
tables: { fills: { columns: { side: { from: direction } } } }
`,
    );
    const profile = await loadProfile(path);
    expect(profile.name).toBe("acme");
    expect(profile.headers).toEqual([
      { name: "X-Key", from: { env: "ACME" } },
      { name: "X-Client", from: { env: "CLIENT" } },
    ]);
    expect(profile.rest!.tables.fills).toMatchObject({
      pages: { by: "link" },
      rows: { form: "array", path: ["items"], mediaTypes: ["application/json"] },
    });
    expect(profile.maps.fills!.columns.side).toEqual({ kind: "field", path: ["direction"] });
    expect(profile.maps.fills!.columns.price).toEqual({ kind: "field", path: ["px"] });
  });

  test("takes files from the folder of the profile that names them", async () => {
    await write("base/base.yaml", `${head}headers: { X-Key: { file: base.key } }\n${fills}`);
    const { headers } = await loadProfile(await write("acme.yaml", `${head}extends: base/base.yaml\n`));
    expect(headers).toEqual([{ name: "X-Key", from: { file: join(folder, "base/base.key") } }]);
  });

  test("has its faults where they are, in either file", async () => {
    await write("base.yaml", `${head}rest:\n  bse: /v2\n${fills}    columns: { price: px }\n`);
    const path = await write(
      "acme.yaml",
      `${head}extends: base.yaml\ntables: { fills: { columns: { fee: px.fee } } }\n`,
    );
    expect(await toldOf(path)).toEqual([
      "base.yaml:4:3: there is no key bse in rest",
      "base.yaml:8:23: tables.fills.columns.price uses all of px, but fee uses px.fee inside it",
    ]);
  });

  test("goes round in no circle", async () => {
    await write("b.yaml", `${head}extends: c.yaml\n${fills}`);
    await write("c.yaml", `${head}extends: ./b.yaml\n${fills}`);
    const path = await write("a.yaml", `${head}extends: b.yaml\n${fills}`);
    expect(await toldOf(path)).toEqual([
      "c.yaml:3:10: the profiles extend each other in a circle: b.yaml → c.yaml → b.yaml",
    ]);
  });

  test("passes on what it extends itself", async () => {
    await write("c.yaml", `${head}rest: { base: /v3 }\n${fills}`);
    await write("b.yaml", `${head}extends: c.yaml\nrest: { largest_limit: 7 }\n`);
    const { rest } = await loadProfile(await write("a.yaml", `${head}extends: b.yaml\n`));
    expect(rest).toMatchObject({ base: "/v3", tables: { fills: { largestLimit: 7 } } });
  });
});

describe("a profile as it is shown", () => {
  const shown: Readonly<Record<string, string>> = {
    default: `${head}extends: default\n`,
    "one table of its own": `${head}extends: default\ntables: { fills: { numbers: exact, columns: { price: px } } }\n`,
    "two tables that share": `${head}
rest: { base: /v1, parameters: { run: r, limit: n, filters: { symbol: s } }, pages: { by: number, send: page, first: 0, total: { header: X-Total } } }
rows: { numbers: exact, fields: freeze, ties: arrival, columns: { seq: derived, ts_event: { from: t, unit: s }, symbol: run } }
tables:
  fills: { path: /fills, columns: { symbol: { from: absent }, trade_id: ["a.b", c], side: { from: side, words: { 1: BUY, "1.0": SELL, true: "no" } } } }
  bars: { path: /bars, times: { unit: { rfc3339: us } }, order: descending, dropped: [{ from: debug.level, lossy: true }], rows: { lines: true, media_types: [text/plain] }, pages: none }
`,
    "documents and errors": `${head}
rest: { parameters: { run: r, instance: i, from: f, to: t }, times: { unit: rfc3339 }, keys: { api_key: { env: KEY, in_address: true } } }
documents:
  instances: { path: /i, list: [] }
  runs: { path: /r, list: runs, id: id, parameters: { instance: inst }, started: s, unit: ms }
  storage: { path: /c, table_parameter: kind, rows: n, parameters: { from: none }, times: { unit: s }, heeds_bounds: false, tables: { x: fills } }
  summary: { path: "/s/{run}", parameters: { instance: none } }
  instance: { path: "/i/{instance}", current_run: now.run }
  given: { alpha: ["1", "2"] }
errors: { code: e.c, gone: [a, 410], busy: [503] }
tables: { fills: { path: /f }, orders: none }
`,
  };

  test.each([...Object.keys(shown), "acme"])("%s is the same when it is read again", async (name) => {
    const profile = name === "acme" ? await loadProfile(acme) : await load(shown[name]!);
    const again = await load(profileText(profile));
    const { file: _, ...is } = again;
    const { file: __, ...was } = profile;
    expect(is).toEqual(was satisfies Partial<Profile>);
  });

  test("and so is the built-in one", async () => {
    const profile = await loadProfile("default");
    expect({ ...(await load(profileText(profile))), file: "default" }).toEqual(profile);
  });
});

test("the published schema takes the example, and the default profile as it is shown", async () => {
  const accepts = new Ajv2020({ strict: false }).compile(profileJsonSchema());
  const text = await readFile(acme, "utf8");
  const finer = text.replace("times: { unit: ms", "times: { unit: { rfc3339: ms }");
  expect(finer).not.toBe(text);
  for (const one of [text, finer, profileText(await loadProfile("default"))]) {
    expect(accepts(parse(one)) || accepts.errors).toBe(true);
  }
});

describe("values of headers and keys", () => {
  const text = `${head}headers: { X-Client: { env: CLIENT }, X-Key: { file: acme.key } }
rest: { keys: { api_key: { env: KEY, in_address: true } } }
${fills}`;
  const signal = new AbortController().signal;

  test("come from the environment and files, and are known as secrets", async () => {
    const profile = await load(text);
    await writeFile(join(folder, "acme.key"), "5ecret-file\n", { mode: 0o600 });
    const known: string[] = [];
    const env = { CLIENT: "5ecret-client", KEY: "5ecret-key" };
    const secrets = await readProfileSecrets(profile, {
      env,
      scrubber: { add: (secret) => known.push(secret) },
      signal,
      warn: () => {},
    });
    expect(secrets).toEqual({
      headers: { "X-Client": "5ecret-client", "X-Key": "5ecret-file" },
      keys: { api_key: "5ecret-key" },
    });
    expect(known.sort()).toEqual(["5ecret-client", "5ecret-file", "5ecret-key"]);
  });

  test("are asked for by name where they are not there", async () => {
    const profile = await load(text);
    const reading = { env: {}, scrubber: { add: () => {} }, signal, warn: () => {} };
    await expect(readProfileSecrets(profile, reading)).rejects.toThrow(
      "headers.X-Client of the profile needs the environment variable CLIENT, which is not set",
    );
  });
});

test("all that is wrong is thrown at once", async () => {
  const path = await write("profile.yaml", `${head}rest: { bse: /a }\ntables: { fils: none }\n`);
  const thrown = await loadProfile(path).catch((error: unknown) => error);
  expect(thrown).toBeInstanceOf(AggregateError);
  const { errors } = thrown as AggregateError;
  expect(errors.map((error) => (error as RunvaultError).place)).toEqual([
    { file: path, line: 3, column: 9 },
    { file: path, line: 4, column: 1 },
    { file: path, line: 4, column: 11 },
  ]);
  expect(errors.every((error) => error instanceof RunvaultError && error.code === "invalid_argument")).toBe(
    true,
  );
});
