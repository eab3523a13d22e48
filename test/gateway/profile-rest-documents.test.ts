import { expect, test } from "vitest";
import { openGateway } from "../../src/gateway/open-gateway.ts";
import type { Profile, RestDocuments } from "../../src/gateway/profile/profile.ts";
import { RunvaultError } from "../../src/model/error.ts";
import type { RowMap } from "../../src/model/profile/row-map.ts";
import { tableNamed } from "../../src/model/profile/table.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";
import {
  type Answered,
  array,
  fillsRoute,
  itemsText,
  noDocuments,
  profileOf,
  type Query,
  read,
  request,
  run,
  serveJson,
} from "../fixtures/source/rest-profile.ts";

const none = { from: undefined, to: undefined, limit: undefined };
const documents: RestDocuments = {
  ...noDocuments,
  instances: {
    ...request("/desks", { ...none, instance: undefined, run: undefined }),
    list: ["data", "desks"],
    id: ["name"],
    runs: ["runs"],
  },
  runs: {
    ...request("/desks/{instance}/runs", none),
    list: ["items"],
    id: ["id"],
    started: ["times", "opened"],
    ended: ["times", "closed"],
    unit: "ms",
    status: ["state"],
    words: { 3: "FINISHED", died: "FAILED", true: "RUNNING" },
    final: ["closed"],
    storageVersion: ["version"],
  },
  summary: request("/runs/{run}", none),
  instance: { ...request("/desks/{instance}", none), currentRun: ["now", "run"] },
  given: { alpha: ["r9"], gamma: ["g1"] },
};

const entry =
  '{ "id":"r1", "times":{"opened":1640995200000.25,"closed":"1640995260000"}, "state":3, "closed":"true", "version":7 }';
const bodies: Record<string, string> = {
  "/desks": '{"data":{"desks":[{"name":"alpha","runs":["r1",12345678901234567890]},{"name":"beta"}]}}',
  "/desks/alpha/runs": `{"items":[${entry},{"id":"r2","times":{"opened":null},"state":"live","closed":false},{"id":"r3","times":{"opened":"soon"},"state":"died"}]}`,
  "/desks/alpha": '{"now":{"run":"r2"}}',
  "/runs/run-1": '{"pnl": 1.0}',
};

function open(url: string, profile: Profile, notices: string[] = []) {
  const onNotice = (text: string) => notices.push(text);
  return openGateway({ baseUrl: url, profile, onNotice, retry: quickRetry({ retries: 0 }) }, "auto");
}

async function codeOf(asked: Promise<unknown>): Promise<string> {
  const thrown = await asked.then(
    () => undefined,
    (error: unknown) => error,
  );
  return thrown instanceof RunvaultError ? thrown.code : "no error";
}

test("instances, runs and documents are read where the profile says, and kept as they came", async () => {
  await using server = await serveJson((path) => {
    const body = bodies[path];
    return body === undefined ? { status: 404 } : { body };
  });
  await using gateway = open(server.url, profileOf({ documents }));
  expect(await gateway.instances()).toEqual([
    { instanceId: "alpha", runIds: ["r1", "12345678901234567890", "r9"] },
    { instanceId: "beta", runIds: [] },
    { instanceId: "gamma", runIds: ["g1"] },
  ]);
  const [listing] = (await gateway.listings?.()) ?? [];
  const runs = await listing!.runs("alpha");
  expect(runs).toMatchObject([
    {
      instanceId: "alpha",
      runId: "r1",
      status: "FINISHED",
      started: 1_640_995_200_000_250_000n,
      ended: 1_640_995_260_000_000_000n,
      final: true,
      storageVersion: "7",
    },
    {
      runId: "r2",
      status: "live",
      started: undefined,
      ended: undefined,
      final: false,
      storageVersion: undefined,
    },
    { runId: "r3" },
  ]);
  expect(Buffer.from(runs![0]!.text!).toString()).toBe(entry);
  expect(runs![2]!.fault).toMatchObject({ code: "not_a_gateway", scope: "run" });
  expect(await listing!.currentRun("alpha")).toBe("r2");
  expect(await listing!.currentRun("beta")).toBe(null);
  expect(await gateway.runs("beta")).toBe(null);
  expect(String(await gateway.document(run, "summary"))).toBe(bodies["/runs/run-1"]);
  expect(String(await gateway.document({ ...run, runId: "r1" }, "run"))).toBe(entry);
  expect(await gateway.document(run, "resources")).toBe(null);
  expect(await gateway.facts(run, {})).toBe(null);
});

test("documents that are not as the profile says are errors", async () => {
  for (const [path, body, code] of [
    ["/desks", '{"data":{"desks":{}}}', "not_a_gateway"],
    ["/desks", '{"data":{"desks":[{"id":"alpha"}]}}', "not_a_gateway"],
    ["/desks", '{"data":{"desks":[{"name":"a"},{"name":"a"}]}}', "not_a_gateway"],
    ["/desks", '{"data":{"desks":[{"name":"a","runs":{}}]}}', "not_a_gateway"],
    ["/desks", "<html>", "not_a_gateway"],
  ] as const) {
    await using server = await serveJson((at) => (at === path ? { body } : { status: 404 }));
    await using gateway = open(server.url, profileOf({ documents }));
    expect(await codeOf(gateway.instances())).toBe(code);
  }
});

test("a list of runs that is the same for every instance is an error, unless there is one instance alone", async () => {
  for (const [desks, code] of [
    ['[{"name":"alpha"},{"name":"beta"}]', "not_filtered"],
    ['[{"name":"alpha"}]', "no error"],
  ] as const) {
    await using server = await serveJson((path) => ({
      body: path === "/desks" ? `{"data":{"desks":${desks}}}` : bodies["/desks/alpha/runs"],
    }));
    await using gateway = open(server.url, profileOf({ documents: { ...documents, given: {} } }));
    expect(await codeOf(gateway.runs("alpha").then((runs) => runs?.slice(0, 1)))).toBe(
      code === "no error" ? "not_a_gateway" : code,
    );
  }
});

const facts = {
  ...request("/counts", { limit: undefined }),
  times: { unit: "ms", from: "inclusive", to: "exclusive" },
  list: ["tables"],
  table: ["name"],
  tableWords: { trades: "fills" },
  tableParameter: undefined,
  rows: ["n"],
  first: ["span", "0"],
  last: ["span", "1"],
  unit: "ms",
  final: undefined,
  heedBounds: true,
} as const;

test("facts of all tables come from one answer, and say which bounds they are of", async () => {
  const asked: string[] = [];
  await using server = await serveJson((_, query) => {
    asked.push(String(query));
    return {
      body: '{"tables":[{"name":"trades","n":"3","span":{"0":1.5,"1":2}},{"name":"other","n":1},{"name":"bars","n":0},{"name":"equity","n":0,"span":{"0":3,"1":4}}]}',
    };
  });
  await using gateway = open(server.url, profileOf({ documents: { ...noDocuments, facts } }));
  const told = await gateway.facts(run, { from: 0n, to: 5_000_000n });
  expect([...told!]).toEqual([
    ["fills", { rows: 3n, first: 1_500_000n, last: 2_000_000n, schemaFingerprint: "", final: false }],
    ["bars", { rows: 0n, first: undefined, last: undefined, schemaFingerprint: "", final: false }],
    // told of no rows, they are evidence of some
    ["equity", { rows: 0n, first: 3_000_000n, last: 4_000_000n, schemaFingerprint: "", final: false }],
  ]);
  expect(asked).toEqual(["desk=alpha&execution=run-1&after=0&before=5"]);
  const whole = { ...facts, heedBounds: false };
  await using other = open(server.url, profileOf({ documents: { ...noDocuments, facts: whole } }));
  expect(await other.facts(run, { from: 0n })).toBe(null);
  expect((await other.facts(run, {}))?.get("fills")?.rows).toBe(3n);
  const unbounded = { ...facts, ...request("/counts", none) };
  await using third = open(server.url, profileOf({ documents: { ...noDocuments, facts: unbounded } }));
  expect(await third.facts(run, { to: 1n })).toBe(null);
});

test("facts in a coarser unit than their bounds are of no window that the unit cannot say", async () => {
  await using server = await serveJson(() => ({
    body: '{"tables":[{"name":"trades","n":1,"span":{"0":1,"1":1}}]}',
  }));
  await using gateway = open(server.url, profileOf({ documents: { ...noDocuments, facts } }));
  expect(await gateway.facts(run, { from: 1n })).toBe(null);
  expect(await gateway.facts(run, { from: 1_000_000n })).not.toBe(null);
});

test("facts of one table a request are put together", async () => {
  await using server = await serveJson((_, query) =>
    query.get("kind") === "trades" ? { body: '{"n":4,"span":{"0":0,"1":9}}' } : { status: 404 },
  );
  const one = { ...facts, list: undefined, tableParameter: "kind" };
  const profile = profileOf({ documents: { ...noDocuments, facts: one } }, { described: ["fills", "bars"] });
  await using gateway = open(server.url, profile);
  expect([...(await gateway.facts(run, {}))!.entries()].map(([name, { rows }]) => [name, rows])).toEqual([
    ["fills", 4n],
  ]);
});

// a gateway without such a route would be taken for one that counts nothing, and rows that come for more than there are
test("facts of one table a request, of which there are none of any table, are not there", async () => {
  await using server = await serveJson(() => ({ status: 404 }));
  const one = { ...facts, list: undefined, tableParameter: "kind" };
  const profile = profileOf({ documents: { ...noDocuments, facts: one } }, { described: ["fills", "bars"] });
  await using gateway = open(server.url, profile);
  expect(await gateway.facts(run, {})).toBe(null);
  expect(await gateway.document(run, "facts")).toBe(null);
});

const errors = {
  code: ["problem", "type"],
  codes: {
    unknown_execution: "run_not_found",
    no_history: "history_unavailable",
    slow_down: "rate_limited",
    store_down: "history_unreachable",
    7: "refused",
  },
} as const;

test("errors mean what the profile says of their code, and else what their status does", async () => {
  const answers: readonly (readonly [Answered, string, string])[] = [
    [
      { status: 400, body: { problem: { type: "unknown_execution", message: "no such thing" } } },
      "run_not_found",
      "400 unknown_execution: no such thing",
    ],
    [{ status: 404, body: { problem: { type: "no_history" } } }, "history_unavailable", "404 no_history"],
    [{ status: 503, body: { problem: { type: "slow_down" } } }, "rate_limited", "503 slow_down"],
    [{ status: 500, body: { problem: { type: "store_down" } } }, "history_unreachable", "500 store_down"],
    [{ status: 422, body: { problem: { type: 7 } } }, "refused", "422 7"],
    [
      { status: 404, body: { problem: { type: "secret-text" } } },
      "route_not_found",
      "404 with an unknown code",
    ],
    [{ status: 429, body: "busy" }, "rate_limited", "429"],
    [{ status: 500, body: { problem: [] } }, "server_error", "500"],
  ];
  for (const [answer, code, text] of answers) {
    await using server = await serveJson(() => answer);
    const { error } = await read(server, profileOf({ errors, tables: { fills: fillsRoute() } }));
    expect([error?.code, error?.message]).toEqual([code, `the gateway answered ${text}`]);
  }
});

test("tables that the profile says are not there, or says nothing of, are not asked for", async () => {
  await using server = await serveJson(() => ({}));
  const profile = profileOf({ tables: { fills: fillsRoute() } }, { none: ["orders"] });
  await using gateway = open(server.url, profile);
  expect(gateway.described).toEqual({ tables: ["fills"], none: ["orders"], by: "acme" });
  expect((await read(server, profile, { table: "orders" })).error?.code).toBe("history_unavailable");
  expect((await read(server, profile, { table: "bars" })).error).toMatchObject({
    code: "route_not_found",
    message: "the profile acme has no route for bars",
  });
  expect(server.requests).toEqual([]);
});

/** A map by which rows are canonical already but for the ids, which they do not have. */
const map: RowMap = {
  numbers: "text",
  fields: "keep",
  ties: "bytes",
  dropped: [],
  columns: Object.fromEntries(
    tableNamed("fills").columns.map(({ name }) => {
      if (name === "run_id") return [name, { kind: "run" }];
      if (name === "instance_id") return [name, { kind: "instance" }];
      if (name === "ts_event" || name === "seq") return [name, { kind: "field", path: [name] }];
      return [name, { kind: "absent" }];
    }),
  ),
};
const nameless = (seq: number) => `{"seq":"${seq}","ts_event":"${1000 + seq}","more":1}`;

type Heeded = (query: Query) => boolean;
const heeding: Record<string, readonly [Heeded, string | undefined]> = {
  "run and instance": [
    (query) => query.get("desk") === "alpha" && query.get("execution") === "run-1",
    undefined,
  ],
  "the run alone": [(query) => query.get("execution") === "run-1", "desk"],
  "the instance alone": [(query) => query.get("desk") === "alpha", "execution"],
  nothing: [() => true, "execution"],
  "the beginning of the run": [
    (query) => query.get("desk") === "alpha" && query.get("execution")!.startsWith("run-1"),
    "execution",
  ],
  "runs that begin so": [
    (query) => query.get("desk") === "alpha" && "run-1".startsWith(query.get("execution")!),
    "execution",
  ],
};

for (const [name, [isHeeded, ignored]] of Object.entries(heeding)) {
  for (const status of [200, 400, 404]) {
    test(`rows that name no run, of a gateway that heeds ${name} and says ${status} else, are ${ignored === undefined ? "taken" : "not"}`, async () => {
      await using server = await serveJson((_, query) => {
        if (!isHeeded(query)) return status === 200 ? { body: itemsText([]) } : { status };
        return { body: itemsText([nameless(1), nameless(2)].slice(0, Number(query.get("max") ?? 9))) };
      });
      const profile = profileOf({ tables: { fills: fillsRoute({ rows: array }) } }, { maps: { fills: map } });
      const { lines, error } = await read(server, profile);
      if (ignored === undefined) {
        expect(error).toBeUndefined();
        expect(lines.length).toBe(2);
        expect(lines[0]).toContain('{"run_id":"run-1","instance_id":"alpha","seq":"1","ts_event":"1001"');
        expect(lines[0]).toContain('"extra":{"more":1}}');
      } else {
        expect(lines).toEqual([]);
        expect(error?.code).toBe("not_filtered");
        expect(error?.message).toContain("/trades");
        expect(error?.message).toContain(ignored);
      }
    });
  }
}

test("whether a gateway heeds the run is asked once a source, and not before rows came", async () => {
  let rows: string[] = [];
  await using server = await serveJson((_, query) => ({
    body: itemsText(query.get("desk") === "alpha" && query.get("execution") === "run-1" ? rows : []),
  }));
  const profile = profileOf({ tables: { fills: fillsRoute() } }, { maps: { fills: map } });
  await using gateway = open(server.url, profile);
  const all = async () => {
    for await (const _ of gateway.rows({ ...run, table: "fills" }));
    return gateway.stats.requests;
  };
  expect(await all()).toBe(1);
  rows = [nameless(1)];
  expect(await all()).toBe(10);
  expect(await all()).toBe(11);
});

test("rows that name no run, asked for without one, are not filtered", async () => {
  await using server = await serveJson(() => ({ body: itemsText([nameless(1)]) }));
  const route = fillsRoute(request("/trades", { run: undefined }));
  const profile = profileOf({ tables: { fills: route } }, { maps: { fills: map } });
  expect((await read(server, profile)).error?.code).toBe("not_filtered");
});

test("a list that says that it goes on, and cannot be followed, says so, and one that is whole does not", async () => {
  const more: Record<string, string> = {
    "/desks": '{"data":{"desks":[{"name":"alpha"},{"name":"beta"}],"total":5}}',
    "/desks/alpha/runs":
      '{"items":[{"id":"r1","state":3,"times":{"opened":1}}],"paging":{"nextPageToken":"abc"}}',
    "/desks/beta/runs":
      '{"items":[{"id":"b1","state":3,"times":{"opened":1}}],"paging":{"nextPageToken":"","total":1}}',
  };
  await using server = await serveJson((path) =>
    more[path] === undefined ? { status: 404 } : { body: more[path] },
  );
  await using gateway = open(server.url, profileOf({ documents }));
  const [listing] = await gateway.listings!();
  expect((await listing!.instances()).rest).toEqual({ text: "data.total says 5", least: 5 });
  expect((await listing!.runs("alpha"))!.rest?.text).toMatch(/next page in paging.nextPageToken, and asking/);
  expect((await listing!.runs("beta"))!.rest).toBeUndefined();
});
