// @module-tag slow
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Code, ConnectError } from "@connectrpc/connect";
import { codeToHttpStatus, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Archive, openArchive } from "../../src/archive/archive.ts";
import { latestView, type TableView } from "../../src/archive/manifest/table-view.ts";
import { SeenSource } from "../../src/extract/proof/seen-source.ts";
import { archiveRun, type RunOutcome } from "../../src/extract/run/archive-run.ts";
import { openGateway } from "../../src/gateway/open-gateway.ts";
import type { TransportChoice } from "../../src/gateway/transport-choice.ts";
import { HistoryErrorDetailSchema } from "../../src/gen/example/history/v1/history_service_pb.ts";
import { type ErrorCode, RunvaultError } from "../../src/model/error.ts";
import { type Served, serve } from "../../src/serve/server.ts";
import { smallWorld, worldRun } from "../fixtures/archive/archived-world.ts";
import { sharedDuckDB } from "../fixtures/archive/shared-duckdb.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";
import { type PutInPlace, type Tamper, tamperWith } from "../fixtures/source/tampered-gateway.ts";
import { isTestAll, someOf } from "../fixtures/trials/cases.ts";

let folder: string;
let behind: Served;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-answer-scope-"));
  behind = await serve({ source: new ArraySource(worldRun, smallWorld(9)), host: "127.0.0.1", port: 0 });
});
afterAll(async () => {
  await behind.close();
  await rm(folder, { recursive: true, force: true });
});

/** Archives fills and orders of a gateway that was tampered with. */
async function archived(
  transport: TransportChoice,
  tamper: Tamper,
  { into, from = behind, seen }: { into?: Archive; from?: Served; seen?: SeenSource } = {},
): Promise<{ archive: Archive; outcome: RunOutcome | RunvaultError; notices: string[] }> {
  await using server = await tamperWith(from.url, tamper);
  const notices: string[] = [];
  const retry = quickRetry({ retries: 1 });
  const baseUrl = `${server.url}/api/v1`;
  await using source = openGateway({ baseUrl, retry, onNotice: (text) => notices.push(text) }, transport);
  const archive = into ?? (await openArchive(await mkdtemp(join(folder, "a-")), { create: true }));
  try {
    const outcome = await archiveRun({
      source,
      archive,
      run: worldRun,
      tables: ["fills", "orders"],
      clock: () => 2_000_000_000_000_000_000n,
      retry,
      signal: new AbortController().signal,
      tool: "test",
      duckdb: sharedDuckDB,
      ...(seen && { seen }),
    });
    return { archive, outcome, notices };
  } catch (thrown) {
    if (thrown instanceof RunvaultError) return { archive, outcome: thrown, notices };
    throw thrown;
  }
}

function manifestOf(outcome: RunOutcome | RunvaultError) {
  if (outcome instanceof RunvaultError) throw outcome;
  return outcome.manifest;
}

/** The tables as the latest attempt left them. */
function tablesOf(outcome: RunOutcome | RunvaultError): Partial<Record<string, TableView>> {
  const tables = Object.entries(manifestOf(outcome).tables);
  return Object.fromEntries(tables.map(([name, table]) => [name, latestView(table)]));
}

const json = { "content-type": "application/json" };
const html = { headers: { "content-type": "text/html" }, body: "<html>no</html>" };
const history = (code: string) => ({
  headers: json,
  body: JSON.stringify({ ok: false, error: { code, message: "m" } }),
});
const connect = (code: Code, detail?: string): PutInPlace => {
  const details = detail === undefined ? [] : [{ desc: HistoryErrorDetailSchema, value: { code: detail } }];
  const error = new ConnectError("m", code, undefined, details);
  return { status: codeToHttpStatus(code), headers: json, body: errorToJsonBytes(error, undefined) };
};

type Case = [name: string, answer: PutInPlace, code: ErrorCode];

const overRest: Case[] = [
  ["400 invalid_argument", { status: 400, ...history("invalid_argument") }, "refused"],
  ["403", { status: 403, ...html }, "permission_denied"],
  ["404 of a page", { status: 404, ...html }, "route_not_found"],
  ["404 run_not_found", { status: 404, ...history("run_not_found") }, "run_not_found"],
  ["404 instance_not_found", { status: 404, ...history("instance_not_found") }, "instance_not_found"],
  ["404 resource_not_found", { status: 404, ...history("resource_not_found") }, "resource_not_found"],
  ["405", { status: 405 }, "route_not_found"],
  ["409 history_unavailable", { status: 409, ...history("history_unavailable") }, "history_unavailable"],
  [
    "409 history_identity_conflict",
    { status: 409, ...history("history_identity_conflict") },
    "history_identity_conflict",
  ],
  ["409 of a code of tomorrow", { status: 409, ...history("of_tomorrow") }, "refused"],
  ["409 of a page", { status: 409, ...html }, "refused"],
  ["409 of nothing", { status: 409 }, "refused"],
  ["413 limit_exceeded", { status: 413, ...history("limit_exceeded") }, "limit_exceeded"],
  ["413 of a page", { status: 413, ...html }, "limit_exceeded"],
  ["422", { status: 422, ...html }, "refused"],
  ["501", { status: 501, ...html }, "route_not_found"],
  ["502 of a page", { status: 502, ...html }, "server_error"],
  ["200 of a page", { status: 200, ...html }, "not_a_gateway"],
  ["205", { status: 205 }, "not_a_gateway"],
  ["206", { status: 206, headers: { "content-type": "application/x-ndjson" } }, "not_a_gateway"],
  ["302 to elsewhere", { status: 302, headers: { location: "http://127.0.0.1:9/" } }, "refused"],
];

const overRpc: Case[] = [
  ["invalid_argument", connect(Code.InvalidArgument), "refused"],
  ["not_found", connect(Code.NotFound), "resource_not_found"],
  ["not_found run_not_found", connect(Code.NotFound, "run_not_found"), "run_not_found"],
  ["permission_denied", connect(Code.PermissionDenied), "permission_denied"],
  ["already_exists", connect(Code.AlreadyExists), "refused"],
  ["resource_exhausted", connect(Code.ResourceExhausted), "rate_limited"],
  ["failed_precondition", connect(Code.FailedPrecondition), "refused"],
  [
    "failed_precondition history_unavailable",
    connect(Code.FailedPrecondition, "history_unavailable"),
    "history_unavailable",
  ],
  ["aborted", connect(Code.Aborted), "server_error"],
  [
    "aborted history_identity_conflict",
    connect(Code.Aborted, "history_identity_conflict"),
    "history_identity_conflict",
  ],
  ["out_of_range", connect(Code.OutOfRange), "limit_exceeded"],
  ["unimplemented", connect(Code.Unimplemented), "route_not_found"],
  ["data_loss", connect(Code.DataLoss), "server_error"],
  ["409 of a page", { status: 409, ...html }, "not_a_gateway"],
  ["413 of a page", { status: 413, ...html }, "limit_exceeded"],
  ["200 of a page", { status: 200, ...html }, "not_a_gateway"],
  ["302", { status: 302, headers: { location: "/" } }, "not_a_gateway"],
];

const routes = [
  ...overRest.map((one) => ["rest", ...one] as const),
  ...overRpc.map((one) => ["rpc", ...one] as const),
];

test.each(routes)("over %s: %s has a code of its own", async (transport, _name, answer, code) => {
  await using server = await tamperWith(behind.url, ({ table }) => (table === "fills" ? answer : undefined));
  const retry = quickRetry({ retries: 0 });
  await using source = openGateway({ baseUrl: `${server.url}/api/v1`, retry }, transport);
  const rows = async () => {
    let bytes = 0;
    for await (const chunk of source.rows({ ...worldRun, table: "fills" })) bytes += chunk.byteLength;
    return bytes;
  };
  await expect(rows()).rejects.toMatchObject({ code });
});

/** In npm test the first answer of each code, which decides what it costs. */
function isTried([, , , code]: (typeof routes)[number], index: number): boolean {
  return (routes.findIndex(([, , , other]) => other === code) === index) !== isTestAll;
}

describe("what one table's route answers costs that table alone", () => {
  test.each(routes.filter(isTried))("over %s: %s", async (transport, _name, answer, code) => {
    const { outcome } = await archived(transport, ({ table }) => (table === "fills" ? answer : undefined));
    const tables = tablesOf(outcome);
    expect(tables.fills).toMatchObject({ state: "INCOMPLETE", error: { code } });
    expect(tables.orders).toMatchObject({ state: "COMPLETE", certificate: { rows: 9 } });
  });

  test.each([
    ["rest", { status: 401, ...html }, "unauthenticated", "job"],
    ["rpc", connect(Code.Unauthenticated), "unauthenticated", "job"],
  ] as const)(
    "but over %s who may not ask there may not ask elsewhere: %j",
    async (transport, answer, code, scope) => {
      const { outcome } = await archived(transport, ({ table }) => (table === "fills" ? answer : undefined));
      expect(outcome).toMatchObject({ code, scope });
    },
  );

  // caught by: a token without any permission, told of each table and recorded as an attempt on each
  test("but who may ask for no table may not ask at all", async () => {
    const { outcome } = await archived("rest", ({ table, isFacts }) =>
      table === undefined ? (isFacts ? { status: 404 } : undefined) : { status: 403, ...html },
    );
    expect(outcome).toMatchObject({ code: "permission_denied", scope: "instance" });
  });
});

describe("204", () => {
  test.each(["rest", "rpc"] as const)("over %s is an answer without rows", async (transport) => {
    const tamper: Tamper = ({ table, isFacts }) =>
      table === "fills" ? { status: 204 } : isFacts ? { status: 404 } : undefined;
    const { outcome } = await archived(transport, tamper);
    expect(tablesOf(outcome).fills).toMatchObject({
      state: "UNVERIFIED",
      certificate: { rows: 0 },
    });
    expect(tablesOf(outcome).orders).toMatchObject({ state: "COMPLETE", certificate: { rows: 9 } });
  });

  test.each(["rest", "rpc"] as const)(
    "over %s, of a table that facts count, leaves it INCOMPLETE",
    async (transport) => {
      const { outcome } = await archived(transport, ({ table }) =>
        table === "fills" ? { status: 204 } : undefined,
      );
      expect(tablesOf(outcome).fills).toMatchObject({
        state: "INCOMPLETE",
        error: { code: "incomplete" },
      });
    },
  );

  // caught by: a route that answers 204 to everything, taken for a table without rows; and an alarm each night for a
  // gateway that says so of every window without rows
  test.each([
    ["rest", "of one table alone, shows nothing", false, "UNVERIFIED"],
    ["rpc", "of one table alone, shows nothing", false, "UNVERIFIED"],
    [
      "rest",
      "of a window without rows in tables that have some, is an answer without rows",
      true,
      "COMPLETE",
    ],
  ] as const)("over %s, where nothing is counted, %s", async (transport, _, isUsual, state) => {
    const world = smallWorld(9).set("fills", []);
    const from = await serve({ source: new ArraySource(worldRun, world), host: "127.0.0.1", port: 0 });
    try {
      const tamper: Tamper = async ({ table, isFacts }, own) => {
        if (isFacts) return { status: 404 };
        if (table === "fills") return { status: 204 };
        const isEmpty = isUsual && table !== undefined && (await own()).body.byteLength === 0;
        return isEmpty ? { status: 204 } : undefined;
      };
      const seen = new SeenSource({ routes: ["fills"], empty: {} });
      const { outcome } = await archived(transport, tamper, { from, seen });
      expect(tablesOf(outcome)).toMatchObject({
        fills: { state, certificate: { rows: 0 } },
        orders: { state: "COMPLETE", certificate: { rows: 9 } },
      });
    } finally {
      await from.close();
    }
  });
});

const factless: [transport: "rest" | "rpc", name: string, answer: PutInPlace, told: boolean][] = [
  ["rest", "204", { status: 204 }, false],
  ["rest", "404", { status: 404, ...html }, false],
  ["rest", "404 resource_not_found", { status: 404, ...history("resource_not_found") }, false],
  ["rest", "501", { status: 501, ...html }, false],
  ["rest", "409 history_unavailable", { status: 409, ...history("history_unavailable") }, false],
  ["rest", "409 of a code of tomorrow", { status: 409, ...history("of_tomorrow") }, true],
  ["rest", "409 of a page", { status: 409, ...html }, true],
  ["rest", "413", { status: 413, ...html }, true],
  ["rpc", "204", { status: 204 }, false],
  ["rpc", "unimplemented", connect(Code.Unimplemented), false],
  ["rpc", "not_found", connect(Code.NotFound), false],
  ["rpc", "failed_precondition", connect(Code.FailedPrecondition), true],
  ["rpc", "out_of_range", connect(Code.OutOfRange), true],
];

describe("storage facts that are refused are not there", () => {
  test.each(someOf(factless, 3))("over %s: %s", async (transport, _name, answer, told) => {
    const { outcome, notices } = await archived(transport, ({ isFacts }) => (isFacts ? answer : undefined));
    for (const table of Object.values(tablesOf(outcome))) {
      expect(table).toMatchObject({ state: "COMPLETE", certificate: { proof: "exhausted", rows: 9 } });
    }
    expect(notices.map((text) => text.split(":")[0])).toEqual(
      (told ? ["storage facts", "the facts document"] : []).map(
        (what) => `the gateway does not provide ${what}`,
      ),
    );
  });

  test("and where they speak of another run, or another language, that is an error of the run", async () => {
    const conflict = { status: 409, ...history("history_identity_conflict") };
    const of = async (answer: PutInPlace) =>
      (await archived("rest", ({ isFacts }) => (isFacts ? answer : undefined))).outcome;
    expect(await of(conflict)).toMatchObject({ code: "history_identity_conflict" });
    expect(await of({ status: 400, ...html })).toMatchObject({ code: "refused", scope: "run" });
    expect(await of({ status: 200, ...html })).toMatchObject({ code: "not_a_gateway", scope: "run" });
  });
});

test.each([
  ["rest", { status: 413, ...history("limit_exceeded") }],
  ["rpc", connect(Code.OutOfRange)],
] as const)(
  "over %s, a scan for row hashes that is refused as too much is no lack of facts",
  async (transport, answer) => {
    await using server = await tamperWith(behind.url, ({ isFacts }) => (isFacts ? answer : undefined));
    const retry = quickRetry({ retries: 0 });
    await using source = openGateway({ baseUrl: `${server.url}/api/v1`, retry }, transport);
    const asked = { withHash: true, table: "fills" } as const;
    await expect(source.facts(worldRun, {}, undefined, asked)).rejects.toMatchObject({
      code: "limit_exceeded",
    });
  },
);

describe("storage facts that turn 404", () => {
  test.each(someOf([1, 2, 3, 4, 5], 2))(
    "after %i answers in mid-job leave the run to the weaker proof, with a warning",
    async (answers) => {
      let asked = 0;
      const { outcome } = await archived("rest", ({ isFacts }) =>
        isFacts && ++asked > answers ? { status: 404, ...html } : undefined,
      );
      const tables = tablesOf(outcome);
      for (const name of ["fills", "orders"] as const) {
        expect(tables[name]).toMatchObject({ state: "COMPLETE", certificate: { rows: 9 } });
      }
      // asked for last as a document, which is no proof
      const gone = tables.fills!.certificate!.proof === "exhausted";
      expect((outcome as RunOutcome).warnings).toEqual(
        gone
          ? [
              "the gateway's storage facts for this run disappeared during the job: the proof cannot rest on its counts",
            ]
          : [],
      );
      if (answers < 3) expect(gone).toBe(true);
    },
  );

  test("between two jobs are a warning told once with the run", async () => {
    const { archive } = await archived("rest", () => undefined);
    const without: Tamper = async ({ isFacts, path }, own) => {
      if (isFacts) return { status: 404, ...html };
      if (!path.includes("/history/runs")) return undefined;
      // another version, so that the rows are asked for again
      const { body, headers } = await own();
      const text = Buffer.from(body).toString().replace('"storage_version":"1"', '"storage_version":"2"');
      return { status: 200, headers, body: text };
    };
    const { outcome } = await archived("rest", without, { into: archive });
    expect(tablesOf(outcome).fills).toMatchObject({
      state: "COMPLETE",
      certificate: { proof: "exhausted" },
    });
    expect((outcome as RunOutcome).warnings).toEqual([
      "the gateway had storage facts for this run before, but has none now: the proof cannot rest on its counts",
    ]);
  });
});

test("a document that the gateway refuses is a warning, and the one committed before stays", async () => {
  const { archive, outcome: before } = await archived("rest", () => undefined);
  const refusing: Tamper = async ({ path }, own) => {
    if (path.includes("/history/summary")) return { status: 404, ...history("run_not_found") };
    if (!path.includes("/history/runs")) return undefined;
    const { body, headers } = await own();
    const text = Buffer.from(body).toString().replace('"storage_version":"1"', '"storage_version":"2"');
    return { status: 200, headers, body: text };
  };
  const { outcome } = await archived("rest", refusing, { into: archive });
  expect((outcome as RunOutcome).warnings).toEqual([
    "the summary document is not available: the gateway answered 404 run_not_found: m",
  ]);
  const { summary } = manifestOf(before).documents;
  expect(manifestOf(outcome).documents.summary).toEqual(summary);
  expect(manifestOf(outcome).state).toBe("COMPLETE");

  // unless it is lost
  await rm(join(archive.layout.dataDir(worldRun), summary!.file));
  const { outcome: after } = await archived("rest", refusing, { into: archive });
  expect(manifestOf(after).documents.summary).toBeUndefined();
  expect(manifestOf(after).state).toBe("COMPLETE");
});

test("a list of runs that fails once the rows have come costs the run's own document alone", async () => {
  let lists = 0;
  const { outcome } = await archived("rest", ({ path }) =>
    path.includes("/history/runs") && ++lists > 1 ? { status: 200, ...html } : undefined,
  );
  expect((outcome as RunOutcome).warnings).toEqual([
    expect.stringContaining("the run document is not available: the answer is text/html"),
  ]);
  const { state, documents } = manifestOf(outcome);
  expect(state).toBe("COMPLETE");
  expect(documents.run).toBeUndefined();
  expect(documents.summary).toBeDefined();
});

test("but a run that it no longer has is an error of the run", async () => {
  let lists = 0;
  const { outcome } = await archived("rest", ({ path }) => {
    if (path.includes("/history/runs") && ++lists > 1) {
      return { status: 200, headers: json, body: JSON.stringify({ runs: [] }) };
    }
    const isListOfInstances = path.includes("/history/instances");
    return isListOfInstances ? { status: 200, headers: json, body: '{"instances":[]}' } : undefined;
  });
  expect(outcome).toMatchObject({ code: "run_not_found" });
});
