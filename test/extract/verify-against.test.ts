import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Manifest } from "../../src/archive/manifest/manifest.ts";
import { verifyAgainst } from "../../src/extract/run/verify-against.ts";
import { openRestGateway } from "../../src/gateway/rest/rest-gateway.ts";
import type { TableName } from "../../src/model/profile/table.ts";
import type { TableFacts } from "../../src/model/source.ts";
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

  it("takes a gateway that learned row checksums, and so names its fields, for the same", async () => {
    source.manners = { hashes: "named" };
    expect(differences(await verifyAgainst(source, manifest))).toEqual([]);
    const made = await archiveWorld(join(folder, "named"), source, { tables });
    expect(differences(await verifyAgainst(source, made.manifest))).toEqual([]);
    const fingerprint = made.manifest.tables.fills!.proven!.certificate!.schemaFingerprint!;
    made.manifest.tables.fills!.proven!.certificate!.schemaFingerprint = `${fingerprint},more:string`;
    expect(differences(await verifyAgainst(source, made.manifest))).toEqual([
      expect.stringMatching(/^fills: the schema fingerprint was .*more:string", but the gateway's is now/),
    ]);
  });

  it("does not miss rows that the gateway no longer kept when the run was archived", async () => {
    const rows = source.tables.get("fills")!;
    const growing = new ArraySource(worldRun, new Map([["fills", rows.slice(0, 20)]]), { final: false });
    const more = { tables: ["fills"] as const };
    await archiveWorld(join(folder, "retention"), growing, more);
    growing.tables.set("fills", rows.slice(9));
    const made = await archiveWorld(join(folder, "retention"), growing, more);
    expect(made.manifest.tables.fills!.proven!.certificate!.gatewayFrom).toBe(rows[9]!.ts.toString());
    expect(differences(await verifyAgainst(growing, made.manifest))).toEqual([]);
    growing.tables.set("fills", rows.slice(9).toSpliced(3, 1));
    expect(differences(await verifyAgainst(growing, made.manifest))).toEqual([
      expect.stringMatching(/^fills: \d+ rows archived from \d+ on, but the gateway counts \d+$/),
    ]);
  });

  it.each([
    ["counts no row of", (name: string, own: TableFacts) => [name, { ...own, rows: 0n }] as const],
    ["leaves out", () => null],
  ])("takes note of a table of a finished run that the gateway %s any more", async (_, left) => {
    const facts = source.facts.bind(source);
    source.facts = async (...asked) =>
      new Map(
        [...(await facts(...asked))!].flatMap(([name, own]) => {
          const kept = name === "fills" ? left(name, own) : [name, own];
          return kept === null ? [] : [kept as [TableName, TableFacts]];
        }),
      );
    const { unproven, checks } = await verifyAgainst(source, manifest);
    expect(unproven).toBe(false);
    expect(checks.find(({ table }) => table === "fills")).toMatchObject({
      level: "notice",
      detail: "the gateway no longer has the 25 rows archived",
    });
  });

  it("names the table, both counts and the new last time when rows were added", async () => {
    const rows = source.tables.get("fills")!;
    source.tables.set("fills", [...rows, ...rowsAt(worldRun, "fills", [9_000_000_000_000_000_000n])]);
    expect(differences(await verifyAgainst(source, manifest))).toEqual([
      "fills: 25 rows archived, but the gateway counts 26",
      expect.stringMatching(
        /^fills: the last ts_event archived is \d+, but the gateway's is 9000000000000000000$/,
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
      detail: expect.stringContaining("not compared"),
    });
  });

  it("finds a table that was archived as absent and is there now", async () => {
    const absent = structuredClone(manifest);
    Object.assign(absent.tables.bars!.proven!, {
      state: "ABSENT",
      certificate: null,
      segments: [],
      parquet: [],
    });
    expect(differences(await verifyAgainst(source, absent))).toEqual([
      "bars: archived as ABSENT, but the gateway counts 25 rows",
    ]);
  });
});

describe("a gateway that keeps rows for some time only", () => {
  /** An archive of a run of which the gateway dropped the first nine rows since the first job, and a source as it is now. */
  async function shortened(name: string) {
    const growing = new ArraySource(worldRun, smallWorld(), { final: false });
    await archiveWorld(join(folder, name), growing, { tables });
    for (const table of tables) growing.tables.set(table, growing.tables.get(table)!.slice(9));
    const { manifest } = await archiveWorld(join(folder, name), growing, { tables });
    expect(manifest.tables.fills!.proven!.certificate!.gatewayFrom).not.toBeNull();
    return { growing, manifest };
  }

  it("is not expected to have what it had dropped when the table was proven", async () => {
    const { growing, manifest } = await shortened("kept");
    const report = await verifyAgainst(growing, manifest);
    expect(report.checks.map(({ level }) => level)).toEqual(["ok", "ok"]);
    expect(report.checks[0]!.detail).toMatch(/^the gateway counts \d+ rows from \d+ on before \d+, as/);
    growing.tables.set("fills", growing.tables.get("fills")!.toSpliced(4, 1));
    expect(differences(await verifyAgainst(growing, manifest))).toEqual([
      expect.stringMatching(/^fills: \d+ rows archived from \d+ on, but the gateway counts \d+$/),
    ]);
  });

  it("is noted where it dropped more since, and unproven where others are gone as well", async () => {
    const { growing, manifest } = await shortened("more");
    const rows = growing.tables.get("fills")!;
    growing.tables.set("fills", rows.slice(3));
    const report = await verifyAgainst(growing, manifest);
    expect(report).toMatchObject({
      unproven: false,
      checks: [
        { level: "notice", detail: expect.stringContaining(`no longer has rows before ${rows[3]!.ts}`) },
        {},
      ],
    });
    growing.tables.set("fills", rows.slice(3, -4));
    expect((await verifyAgainst(growing, manifest)).unproven).toBe(true);
  });

  it("is noted where it still had all rows when the table was proven", async () => {
    source.tables.set("fills", source.tables.get("fills")!.slice(9));
    const report = await verifyAgainst(source, manifest);
    expect(report).toMatchObject({ unproven: false, checks: [{ level: "notice" }, { level: "ok" }] });
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
