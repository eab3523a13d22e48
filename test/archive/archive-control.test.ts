// @module-tag slow
import { mkdir, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { manifestText } from "../../src/archive/manifest/manifest.ts";
import { RunOverviews } from "../../src/archive/manifest/run-overview.ts";
import { archiveControl } from "../../src/archive/read/archive-control.ts";
import { openArchiveSource } from "../../src/archive/read/archive-source.ts";
import { sha256Of } from "../../src/archive/write/segment.ts";
import type { RunvaultError } from "../../src/model/error.ts";
import type { HistorySource } from "../../src/model/source.ts";
import { TokenList, tokenLine } from "../../src/serve/auth/token-list.ts";
import { type Served, serve } from "../../src/serve/server.ts";
import { ArchiveUnderTest, archiveWorld, smallWorld, worldRun } from "../fixtures/archive/archived-world.ts";
import { unproven } from "../fixtures/archive/unproven-table.ts";
import { historyClient } from "../fixtures/served/rpc-clients.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

let made: ArchiveUnderTest;
let source: HistorySource;
let server: Served;
let damage: RunvaultError[];
beforeAll(async () => {
  made = await ArchiveUnderTest.create(["fills", "bars"]);
});
beforeEach(async () => {
  await made.renew();
  damage = [];
  source = openArchiveSource(made.archive, { onDamage: (error) => damage.push(error) });
  const control = archiveControl(made.archive, { source, version: "7" });
  server = await serve({ source, control, host: "127.0.0.1", port: 0, onError: () => {} });
});
afterEach(async () => {
  await server.close();
  await source[Symbol.asyncDispose]();
});
afterAll(() => made[Symbol.asyncDispose]());

// biome-ignore lint/suspicious/noExplicitAny: bodies are compared, not used
async function ask(path: string, method = "GET"): Promise<{ status: number; body: any }> {
  const answer = await fetch(`${server.url}${path}`, { method });
  return { status: answer.status, body: await answer.json() };
}

const { instanceId, runId } = worldRun;
const beta = { instanceId: "beta", runId };

test("an instance that has history is stopped, and its last run is its run", async () => {
  const { body } = await ask("/instances");
  expect(body).toMatchObject({
    daemon: { reachable: true, version: "7", message: "" },
    instances: [
      {
        instanceId,
        desiredState: "STOPPED",
        processState: "STOPPED",
        runtimeState: "STOPPED",
        instanceState: "STOPPED",
        currentRunId: runId,
        endpoints: { runtime: true, websocket: false, metricsPort: 0 },
      },
    ],
  });
  expect((await ask(`/instances/${instanceId}/health`)).body.classification).toBe("HEALTHY");
});

test("only history is offered, and nothing is said to have failed", async () => {
  const { body } = await ask(`/runtime/status?instance=${instanceId}`);
  expect(body).toMatchObject({
    transport: { connected: true, kind: "archive" },
    engine: { state: "STOPPED", runId },
    capabilities: { history: true, subscriptions: false, lifecycle: false, logs: false, accounts: false },
    capabilityErrors: [],
  });
});

test.each([
  ["POST", "start", "lifecycle"],
  ["POST", "stop", "lifecycle"],
  ["POST", "restart", "lifecycle"],
  ["GET", "logs", "logs"],
  ["GET", "logs?follow=true", "logs"],
])("%s %s is a capability that an archive has not", async (method, path, capability) => {
  const { status, body } = await ask(`/instances/${instanceId}/${path}`, method);
  expect([status, body.error]).toEqual([
    409,
    expect.objectContaining({
      code: "ERROR_CODE_CAPABILITY_UNAVAILABLE",
      capability,
      hint: expect.stringContaining("gateway"),
    }),
  ]);
  expect((await ask(`/instances/nobody/${path}`, method)).status).toBe(404);
});

test.each([
  ["accounts", 409],
  ["accounts/main", 409],
  ["portfolios", 409],
  ["events", 409],
  ["events/x", 404],
  ["resources/x", 404],
  ["nothing", 404],
])("the query path %s is never an empty success", async (path, status) => {
  expect((await ask(`/runtime/query/${path}?instance=${instanceId}`)).status).toBe(status);
});

test("the doctor finds nothing wrong with an archive as committed", async () => {
  const { status, body } = await ask("/doctor");
  expect([status, body.ok]).toEqual([200, true]);
  expect(body.checks.map(({ name }: { name: string }) => name)).toEqual([
    "control_plane",
    "history",
    "archive",
    "manifest",
    "files",
    "tables",
  ]);
});

test("the doctor names tables that are not whole, also where they are served", async () => {
  await made.editManifest(({ tables }) => {
    tables.fills = unproven(tables.fills!, "INCOMPLETE");
    tables.bars = unproven(tables.bars!, "UNVERIFIED");
  });
  expect((await ask(`/history/fills?instance=${instanceId}&run_id=${runId}`)).status).toBe(409);
  const { status, body } = await ask("/doctor");
  const since = made.manifest.tables.fills!.attempt.at;
  expect([status, body.checks.at(-1)]).toEqual([
    502,
    {
      name: "tables",
      ok: false,
      message:
        `${instanceId}/${runId} has fills INCOMPLETE since ${since}, bars UNVERIFIED since ${since}. ` +
        "Run `runvault verify` to see why, and archive these runs again.",
    },
  ]);
  const asTheyAre = archiveControl(made.archive, { source, version: "7", allowIncomplete: true });
  expect((await asTheyAre.checks!()).at(-1)?.message).toBe(body.checks.at(-1).message);
});

test("a table that is absent, or whole up to the horizon, is no trouble", async () => {
  await made.editManifest(({ tables }) => {
    tables.fills!.state = tables.fills!.proven!.state = "ABSENT";
    tables.bars!.state = tables.bars!.proven!.state = "OPEN";
  });
  expect((await ask("/doctor")).status).toBe(200);
});

test("of many runs with tables that are not whole the doctor names the latest, each instance's apart", async () => {
  const { archive, manifest } = made;
  const days = Array.from({ length: 9 }, (_, i) => `2021-01-0${i + 1}`);
  for (const [i, day] of days.entries()) {
    const run = { instanceId: i < 8 ? "many" : "other", runId: day };
    const changed = structuredClone({ ...manifest, ...run });
    changed.run.started = String(i + 1);
    changed.tables.fills = unproven(changed.tables.fills!, "QUARANTINED");
    changed.documents = {};
    for (const table of Object.values(changed.tables)) {
      Object.assign(table.proven ?? table.attempt.holding!, { segments: [], parquet: [] });
    }
    await mkdir(join(archive.layout.manifestFile(run), ".."), { recursive: true });
    await writeFile(archive.layout.manifestFile(run), manifestText(changed));
  }
  const checks = (await archiveControl(archive, { source, version: "7" }).checks!()).filter(
    ({ name }) => name === "tables",
  );
  expect(checks).toMatchObject([
    {
      instanceId: "many",
      message: expect.stringMatching(
        /^many\/2021-01-08 has fills QUARANTINED since .*; .*-07 .*-06 .*; and 5 more\./,
      ),
    },
    {
      instanceId: "other",
      message: expect.stringContaining("other/2021-01-09 has fills QUARANTINED since "),
    },
  ]);
});

test("the doctor names files that are missing or short, and no folder of the machine", async () => {
  const { fills, bars } = made.manifest.tables;
  const [gone, short] = [fills!.proven!.segments[0]!.file, bars!.proven!.segments[0]!.file];
  await rm(made.dataFile(gone));
  await truncate(made.dataFile(short), 5);
  const { status, body } = await ask("/doctor");
  expect(status).toBe(502);
  const { message } = body.checks.find(({ name }: { name: string }) => name === "files");
  expect(message).toBe(`${instanceId}/${runId}: ${gone} is missing, and 1 more`);
  expect(JSON.stringify(body)).not.toContain(made.folder);
});

test("a damaged manifest hides no other run, and none of its own instance is given for it", async () => {
  const other = await archiveWorld(made.archive.dir, new ArraySource(beta, smallWorld(25, beta)), {
    tables: ["fills"],
  });
  await writeFile(made.archive.layout.manifestFile({ instanceId, runId: "2023-01-01" }), "{}");
  expect(other.manifest.instanceId).toBe("beta");
  for (let asked = 0; asked < 2; asked++) {
    const { status, body } = await ask("/history/instances");
    expect([status, body.instances]).toEqual([
      200,
      [
        { instance_id: instanceId, run_ids: [runId], latest_run_id: runId },
        { instance_id: "beta", run_ids: [beta.runId], latest_run_id: beta.runId },
      ],
    ]);
  }
  const listed = await historyClient(server).listInstances({});
  expect(listed.instances.map((instance) => instance.instanceId)).toEqual([instanceId, "beta"]);
  // the owner is told once
  expect(damage).toMatchObject([
    { code: "archive_damaged", place: { file: expect.stringContaining("2023") } },
  ]);
  const rows = (id: string, run: string) => fetch(`${server.url}/history/fills?instance=${id}&run_id=${run}`);
  expect((await rows(instanceId, runId)).status).toBe(200);
  expect((await rows("beta", "")).status).toBe(200);
  // which run is the latest of the other, or whether there is one more, nobody can tell
  for (const path of [`/history/runs?instance=${instanceId}`, `/history/fills?instance=${instanceId}`]) {
    const { status, body } = await ask(path);
    expect([status, body.error.code]).toEqual([502, "history_query_failed"]);
    expect(JSON.stringify(body)).not.toContain(made.folder);
  }
  expect((await ask("/history/runs?instance=beta")).status).toBe(200);
});

test("clients who ask the doctor at the same time share one look at the files", async () => {
  const overviews = new RunOverviews(made.archive, false);
  const [one, other] = [overviews.missingFiles(), overviews.missingFiles()];
  expect(other).toBe(one);
  expect(await one).toEqual([]);
});

test("what is damaged or forbidden is told without a path or a word of the system's", async () => {
  const { fills } = made.manifest.tables;
  await writeFile(made.dataFile(fills!.proven!.parquet[0]!.file), "no Parquet");
  await writeFile(made.dataFile(fills!.proven!.segments[0]!.file), "no segment");
  const run = `instance=${instanceId}&run_id=${runId}`;
  for (const path of [`/history/fills?${run}&symbol=A`, `/history/fills?${run}`]) {
    const { status, body } = await ask(path);
    expect([path, status, body.error.code]).toEqual([path, 502, "history_query_failed"]);
    expect(JSON.stringify(body)).not.toMatch(/\/|Error|parquet_/);
  }
});

test("the doctor names a damaged manifest", async () => {
  await writeFile(made.archive.layout.manifestFile({ instanceId, runId: "other" }), "{}");
  const { status, body } = await ask("/doctor");
  expect(status).toBe(502);
  expect(body.checks.find(({ name }: { name: string }) => name === "manifest")).toMatchObject({
    ok: false,
    message: expect.stringContaining(`runs/${instanceId}/other.json: the manifest`),
  });
  expect(JSON.stringify(body)).not.toContain(made.folder);
  // the other run is there all the same, and the trouble is told where capabilities are
  const told = await ask(`/runtime/status?instance=${instanceId}`);
  expect(told.body.capabilityErrors).toMatchObject([{ capability: "history", reason: "FAILED" }]);
  expect((await ask("/instances")).body.instances).toHaveLength(1);
});

/** Samples of what the archive holds. */
async function kept(base: string, headers: Record<string, string> = {}): Promise<string[]> {
  const text = await (await fetch(`${base}/metrics`, { headers })).text();
  return text.split("\n").filter((line) => line.startsWith("runvault_archive_"));
}

const statesOf = (counts: Record<string, number>) =>
  ["COMPLETE", "OPEN", "QUARANTINED", "UNVERIFIED", "INCOMPLETE"].map(
    (state) => `runvault_archive_runs{state="${state}"} ${counts[state] ?? 0}`,
  );

test("metrics count runs by state, with all states, and say when the newest was committed", async () => {
  const newest = (iso: string) =>
    `runvault_archive_newest_commit_timestamp_seconds ${Date.parse(iso) / 1000}`;
  expect(await kept(server.url)).toEqual([...statesOf({ COMPLETE: 1 }), newest(made.manifest.committedAt)]);
  const committedAt = "2200-01-01T00:00:00.000Z";
  const other = { ...structuredClone(made.manifest), ...beta, state: "INCOMPLETE", committedAt } as const;
  const file = made.archive.layout.manifestFile(beta);
  await mkdir(join(file, ".."), { recursive: true });
  await writeFile(file, manifestText(other));
  expect(await kept(server.url)).toEqual([...statesOf({ COMPLETE: 1, INCOMPLETE: 1 }), newest(committedAt)]);
  // a token counts those of its own instances
  const token = "0123456789abcdef-of-one";
  const tokens = TokenList.parse(tokenLine(token, "one", [instanceId]), "tokens");
  const control = archiveControl(made.archive, { source, version: "7" });
  const guarded = await serve({ source, control, tokens, host: "127.0.0.1", port: 0 });
  try {
    expect(await kept(guarded.url, { authorization: `Bearer ${token}` })).toEqual([
      ...statesOf({ COMPLETE: 1 }),
      newest(made.manifest.committedAt),
    ]);
  } finally {
    await guarded.close();
  }
});

test("metrics of the process are there while the archive cannot be read", async () => {
  await rm(made.archive.layout.runsDir, { recursive: true });
  await writeFile(made.archive.layout.runsDir, "no folder");
  expect(await kept(server.url)).toEqual([]);
  expect(await (await fetch(`${server.url}/metrics`)).text()).toContain("process_resident_memory_bytes");
});

/** Puts a document of the instance into the archive, as if it had been committed. */
async function storeInstance(text: string, committed = text): Promise<void> {
  const file = "instance.g1.000099.json";
  await writeFile(made.dataFile(file), text);
  await made.editManifest((manifest) => {
    manifest.documents.instance = {
      file,
      storedBytes: Buffer.byteLength(committed),
      sha256: sha256Of(Buffer.from(committed)),
    };
  });
}

test("the project is the one that the instance's own document named", async () => {
  const project = { name: "ma-crossover", version: "1.0.0" };
  await storeInstance(JSON.stringify({ instanceId, project, beyond: "this contract" }));
  expect((await ask("/instances")).body.instances).toMatchObject([{ project }]);
  expect((await ask(`/instances/${instanceId}`)).body).toMatchObject({ project });
  // a later commit may know another one
  const later = { ...project, version: "2.0.0" };
  await storeInstance(JSON.stringify({ instanceId, project: later }));
  expect((await ask(`/instances/${instanceId}`)).body).toMatchObject({ project: later });
});

test.each([
  ["names no project", "{}", "{}"],
  ["is no instance", "[]", "[]"],
  ["is not what was committed", "{}", "{ }"],
])("an instance whose document %s is listed without a project", async (_what, text, committed) => {
  await storeInstance(text, committed);
  expect((await ask("/instances")).body.instances).toMatchObject([{ project: { name: "", version: "" } }]);
});
