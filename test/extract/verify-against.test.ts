import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Manifest } from "../../src/archive/manifest.ts";
import { verifyAgainst } from "../../src/extract/verify-against.ts";
import { openRestGateway } from "../../src/gateway/rest-gateway.ts";
import { archiveWorld, smallWorld, worldRun } from "../fixtures/archive/archived-world.ts";
import { ArraySource, rowsAt } from "../fixtures/source/array-source.ts";
import { type IndependentGateway, startIndependentGateway } from "../fixtures/source/independent-gateway.ts";

const tables = ["fills", "bars"] as const;
let folder: string;
let manifest: Manifest;
let source: ArraySource;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-verify-against-"));
  const made = await archiveWorld(join(folder, "archive"), new ArraySource(worldRun, smallWorld()), {
    tables,
  });
  manifest = made.manifest;
});
afterAll(() => rm(folder, { recursive: true, force: true }));
beforeEach(() => {
  source = new ArraySource(worldRun, smallWorld());
});

function differences(report: Awaited<ReturnType<typeof verifyAgainst>>): string[] {
  return report.checks.filter(({ ok }) => !ok).map(({ table, detail }) => `${table}: ${detail}`);
}

describe("asking the gateway's facts again", () => {
  it("finds a run as it was archived", async () => {
    const report = await verifyAgainst(source, manifest);
    expect(report).toMatchObject({ asked: true, unproven: false });
    expect(report.checks.map(({ table, level }) => [table, level])).toEqual(
      tables.map((table) => [table, "ok"]),
    );
  });

  it("names the table, both counts and the new last time when rows were added", async () => {
    const rows = source.tables.get("fills")!;
    source.tables.set("fills", [...rows, ...rowsAt(worldRun, "fills", [9_000_000_000_000_000_000n])]);
    expect(differences(await verifyAgainst(source, manifest))).toEqual([
      "fills: 25 rows archived, the gateway says it holds 26",
      expect.stringMatching(
        /^fills: the last ts_event archived is \d+, the gateway says 9000000000000000000$/,
      ),
    ]);
  });

  it("asks with the bounds of the certificate: later rows of a run that goes on are no difference", async () => {
    const growing = new ArraySource(worldRun, smallWorld(), { final: false });
    const made = await archiveWorld(join(folder, "growing"), growing, { tables });
    expect(made.manifest.tables.fills?.state).toBe("OPEN");
    const rows = growing.tables.get("fills")!;
    growing.tables.set("fills", [...rows, ...rowsAt(worldRun, "fills", [9_000_000_000_000_000_000n])]);
    expect(differences(await verifyAgainst(growing, made.manifest))).toEqual([]);
  });

  it("says that a gateway without facts cannot be asked", async () => {
    const literal = new ArraySource(worldRun, smallWorld(), { literal: true });
    const report = await verifyAgainst(literal, manifest);
    expect(report).toMatchObject({ asked: false, unproven: false });
    expect(report.checks[0]).toMatchObject({
      level: "notice",
      detail: expect.stringContaining("cannot be asked"),
    });
  });

  it("finds a table that was archived as absent and is there now", async () => {
    const absent = structuredClone(manifest);
    Object.assign(absent.tables.bars!, { state: "ABSENT", certificate: null, segments: [], parquet: [] });
    expect(differences(await verifyAgainst(source, absent))).toEqual([
      "bars: archived as ABSENT, the gateway says it holds 25 rows",
    ]);
  });
});

describe("a gateway written apart from this program", () => {
  let gateway: IndependentGateway;
  beforeAll(async () => {
    gateway = await startIndependentGateway({ facts: true });
  });
  afterAll(() => gateway.close());

  it("finds an archive made of it as it was archived", async () => {
    await using remote = openRestGateway({ baseUrl: gateway.url });
    const run = { instanceId: "momentum-1", runId: "run-2" };
    const made = await archiveWorld(join(folder, "independent"), { ...adapter(remote), run } as never);
    const report = await verifyAgainst(remote, made.manifest);
    expect(differences(report)).toEqual([]);
    expect(report.checks).toHaveLength(8);
  });
});

/** The source's methods, to stand beside a run. */
function adapter(source: ReturnType<typeof openRestGateway>) {
  return {
    label: source.label,
    instances: source.instances.bind(source),
    runs: source.runs.bind(source),
    facts: source.facts.bind(source),
    document: source.document.bind(source),
    rows: source.rows.bind(source),
  };
}
