// @module-tag slow
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Archive, openArchive } from "../../src/archive/archive.ts";
import { lockRun } from "../../src/archive/lock.ts";
import { type Manifest, manifestText } from "../../src/archive/manifest/manifest.ts";
import { RunvaultError } from "../../src/model/error.ts";
import { archiveWorld, smallWorld } from "../fixtures/archive/archived-world.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

const runs = [
  { instanceId: "alpha", runId: "1" },
  { instanceId: "alpha", runId: "2" },
  { instanceId: "beta", runId: "1" },
];
const [first] = runs as [(typeof runs)[number]];
let folder: string;
let archive: Archive;
let manifest: Manifest;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-repair-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));
beforeEach(async () => {
  const dir = await mkdtemp(join(folder, "archive-"));
  const tables = ["fills"] as const;
  for (const run of runs) await archiveWorld(dir, new ArraySource(run, smallWorld(25, run)), { tables });
  archive = await openArchive(dir);
  manifest = (await archive.manifest(first))!;
});

const verify = (...more: string[]) => runInside(["verify", "--archive", archive.dir, ...more]);
const dataFile = (name: string) => join(archive.layout.dataDir(first), name);
const parquet = () => dataFile(manifest.tables.fills!.proven!.parquet[0]!.file);
const segment = () => dataFile(manifest.tables.fills!.proven!.segments[0]!.file);

async function flip(file: string): Promise<void> {
  const bytes = await readFile(file);
  bytes[bytes.length >> 1]! ^= 1;
  await writeFile(file, bytes);
}

/** Writes a run's manifest as if it had been committed at this time, from this gateway. */
async function recommit(run: (typeof runs)[number], change: Partial<Manifest>): Promise<void> {
  const found = (await archive.manifest(run))!;
  await writeFile(archive.layout.manifestFile(run), manifestText({ ...found, ...change }));
}

async function verified(...more: string[]): Promise<string[]> {
  const { runs } = JSON.parse((await verify("--json", ...more)).stdout);
  return runs.map(({ run }: { run: typeof first }) => `${run.instanceId}/${run.runId}`);
}

describe("verify --repair", () => {
  test.each([
    ["flipped", flip],
    ["missing", (file: string) => rm(file)],
  ])("makes Parquet that is %s anew from its segments", async (_, damage) => {
    await damage(parquet());
    expect((await verify()).status).toBe(5);
    const { status, stdout } = await verify("--repair");
    expect(stdout).toContain("repaired: 1 bucket of Parquet rebuilt");
    expect(status).toBe(0);
    expect((await verify("--deep")).status).toBe(0);
    const { stdout: rows } = await runInside([
      "query",
      ...["--archive", archive.dir, "-f", "csv"],
      "SELECT count(*) FROM fills",
    ]);
    expect(rows).toBe("count_star()\n75\n");
  });

  test("names the command that fetches what only the gateway has", async () => {
    await recommit(first, { source: "http://127.0.0.1:8080/api/v1" });
    await flip(segment());
    await flip(parquet());
    const { status, stdout } = await verify("--repair", "alpha");
    const command = `runvault archive --archive ${archive.dir} --gateway http://127.0.0.1:8080/api/v1 alpha/1`;
    expect(status).toBe(5);
    expect(stdout).toContain(
      `next: fetch what is lost: \`${command}\`; if the gateway no longer has the run, restore the files from a copy`,
    );
    const json = JSON.parse((await verify("--repair", "--json")).stdout);
    expect(json.runs[0].repair).toMatchObject({ changed: false, buckets: 0, error: null, archive: command });
    expect(json.runs[1].repair).toBe(null);
  });

  test("says how to go on where it could not begin, and never to remove a run whose segments are sound", async () => {
    await rm(parquet());
    {
      await using _other = await lockRun(archive.layout, first);
      const { status, stdout } = await verify("--repair", "alpha/1");
      expect(status).toBe(5);
      expect(stdout).toContain("next: Wait for it to end, then run the same command again.");
      expect(stdout).not.toContain("runvault rm");
    }
    // an archiving job that was killed once it had fetched rows
    const source = new ArraySource(first, smallWorld(30, first));
    source.storageVersion = "2";
    const killed = archiveWorld(archive.dir, source, {
      tables: ["fills"],
      step: (name) => {
        if (name === "segment-journalled") throw new Error("killed");
      },
    });
    await expect(killed).rejects.toThrow("killed");
    const { status, stdout } = await verify("--repair", "alpha/1");
    expect(status).toBe(5);
    expect(stdout).toContain(`next: Finish the job with \`runvault archive --archive ${archive.dir}\``);
    expect(stdout).not.toContain("runvault rm");
    const { runs: reports } = JSON.parse((await verify("--repair", "--json", "alpha/1")).stdout);
    expect(reports[0].repair).toMatchObject({
      error: { code: "locked", hint: expect.any(String) },
      lost: false,
    });
  });

  test("says to restore lost segments of a run that was closed once its gateway had not got it any more", async () => {
    await recommit(first, { closedAt: "2022-01-01T00:00:00.000Z" });
    await rm(segment());
    const { status, stdout } = await verify("--repair", "alpha/1");
    expect(status).toBe(5);
    expect(stdout).toContain("next: Restore the files from a copy of the archive");
    expect(stdout).not.toMatch(/runvault (archive|rm|verify)/);
  });

  test("names the command that makes Parquet anew where nobody can remember that it is damaged", async () => {
    await flip(parquet());
    await rm(archive.layout.cacheFile(first), { force: true });
    await mkdir(archive.layout.cacheFile(first), { recursive: true });
    const { status, stdout } = await verify("--repair", "alpha/1");
    expect(status).toBe(5);
    expect(stdout).toContain(
      `next: Rebuild its Parquet: \`runvault maintain rebuild --archive ${archive.dir} alpha/1\`.`,
    );
    expect((await runInside(["maintain", "rebuild", "--archive", archive.dir, "alpha/1"])).status).toBe(0);
    expect((await verify("alpha/1")).stdout).toContain("verified");
  });

  test("changes nothing of an archive that is whole", async () => {
    expect((await verify("--repair")).status).toBe(0);
    expect(await archive.manifest(first)).toEqual(manifest);
  });

  test("tells of a damaged manifest and goes on with the other runs", async () => {
    await writeFile(archive.layout.manifestFile(first), "{}");
    const { status, stdout } = await verify("--repair");
    expect(status).toBe(5);
    expect(stdout).toContain("alpha/2  verified");
  });
});

test("the next step after verify names the quarantine where rows are set aside, and only there", async () => {
  const [refused, torn] = runs as [typeof first, typeof first];
  const tables = ["fills"] as const;
  const refusing = new ArraySource(refused, smallWorld(25, refused), {
    refuses: () => new RunvaultError("server_error", "502", { status: 502 }),
  });
  refusing.storageVersion = "2";
  await archiveWorld(archive.dir, refusing, { tables });
  const tearing = new ArraySource(torn, smallWorld(25, torn));
  tearing.storageVersion = "2";
  const rows = tearing.tables.get("fills")!;
  tearing.tables.set("fills", rows.toSpliced(3, 1, { ...rows[3]!, line: '{"seq":' }));
  await archiveWorld(archive.dir, tearing, { tables });
  const without = await verify("alpha/1");
  expect(without).toMatchObject({
    status: 4,
    stdout: expect.stringContaining("next: Archive the run again"),
  });
  expect(without.stdout).not.toContain("quarantine/");
  const beside = await verify("alpha/2");
  expect(beside).toMatchObject({
    status: 4,
    stdout: expect.stringContaining("next: Look at the rows set aside"),
  });
});

describe("verify of a part", () => {
  test("takes an instance for all of its runs, each once", async () => {
    expect(await verified("alpha")).toEqual(["alpha/1", "alpha/2"]);
    expect(await verified("beta", "alpha/2", "alpha")).toEqual(["beta/1", "alpha/2", "alpha/1"]);
    expect(await verify("gamma")).toMatchObject({
      status: 2,
      stderr: expect.stringContaining("not_archived"),
    });
  });

  test("takes runs committed lately, and says how many it left out", async () => {
    const now = Date.now();
    const committedAt = (days: number) => new Date(now - days * 86_400_000).toISOString();
    await recommit(runs[0]!, { committedAt: committedAt(9) });
    await recommit(runs[1]!, { committedAt: committedAt(1) });
    await recommit(runs[2]!, { committedAt: "no time at all" });
    expect(await verified("--since", "7d")).toEqual(["alpha/2", "beta/1"]);
    expect((await verify("--since", "7d", "alpha")).stdout).toContain(
      "1 run was committed before --since, and not checked",
    );
    expect((await verify("--since", "soon")).status).toBe(2);
  });

  test("reads a share of the bytes, sees that the rest is there, and says what it read", async () => {
    const json = JSON.parse((await verify("--sample", "20%", "--json")).stdout);
    const { files, bytes, ofFiles, ofBytes } = json.sample;
    expect(json.exit).toBe(0);
    expect(bytes).toBeGreaterThanOrEqual(ofBytes * 0.2);
    expect(files).toBeLessThan(ofFiles);
    expect((await verify("--sample", "20%")).stdout).toMatch(/\d+ of \d+ files? read, .* of .*/);
    await rm(segment());
    expect((await verify("--sample", "0.001%")).status).toBe(5);
  });

  test("finds flipped bytes in what it reads, each time elsewhere", async () => {
    await flip(parquet());
    expect((await verify("--sample", "100%")).status).toBe(5);
    const statuses = new Set<number | null>();
    for (let i = 0; i < 40 && statuses.size < 2; i++) statuses.add((await verify("--sample", "20%")).status);
    expect([...statuses].sort()).toEqual([0, 5]);
  });

  test.each(["5", "0%", "101%", "a%"])("refuses the share %s", async (share) => {
    expect(await verify("--sample", share)).toMatchObject({ status: 2 });
  });

  test("refuses a sample of a deep verification", async () => {
    expect((await verify("--sample", "5%", "--deep")).status).toBe(2);
  });
});
