// @module-tag slow
import { mkdir, rename, rm, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Manifest, manifestText } from "../../src/archive/manifest/manifest.ts";
import { everyFile } from "../../src/archive/manifest/manifest-files.ts";
import { ArchiveUnderTest, worldRun } from "../fixtures/archive/archived-world.ts";
import { runInside } from "../fixtures/command/command-inside.ts";

let under: ArchiveUnderTest;
beforeAll(async () => {
  under = await ArchiveUnderTest.create();
});
afterAll(() => under[Symbol.asyncDispose]());
beforeEach(() => under.renew());

const name = "alpha/2022-01-01";
const command = (...args: string[]) => runInside([...args, "--archive", under.archive.dir]);
const older = (...args: string[]) => command("rm", "--older-than", "30d", "--dry-run", ...args);
const at = (...parts: string[]) => join(under.archive.dir, ...parts);

/** Writes the manifest with other claims, and a hash that fits. */
async function claim(change: (manifest: Manifest) => object): Promise<void> {
  const manifest = structuredClone(under.manifest);
  const changed = { ...manifest, ...change(manifest) };
  await writeFile(under.archive.layout.manifestFile(worldRun), manifestText(changed));
}

/** Puts a link to an outside folder in the place of one of the archive's. */
async function linkAway(...parts: string[]): Promise<void> {
  const outside = join(under.folder, `outside of ${parts.join(" ")}`);
  await rm(outside, { recursive: true, force: true });
  await rename(at(...parts), outside);
  await symlink(outside, at(...parts));
}

describe("a manifest whose hash fits what cannot be so", () => {
  test.each<[string, (manifest: Manifest) => object, string]>([
    ["has no tables", () => ({ tables: {} }), "by its tables it is INCOMPLETE"],
    [
      "has a table that nothing proves",
      (manifest) => {
        Object.assign(manifest.tables.fills!.proven!.certificate!, { proof: "none" });
        return {};
      },
      "fills: COMPLETE, but nothing proves it",
    ],
    [
      "has a table whose latest attempt failed for no reason",
      (manifest) => {
        Object.assign(manifest.tables.fills!, { state: "INCOMPLETE" });
        Object.assign(manifest.tables.fills!.attempt, { outcome: "INCOMPLETE" });
        return { state: "COMPLETE" };
      },
      "by its tables it is INCOMPLETE",
    ],
    [
      "certifies more rows than there can be",
      (manifest) => {
        Object.assign(manifest.tables.fills!.proven!.certificate!, { rows: Number.MAX_SAFE_INTEGER });
        return {};
      },
      "fills: 9007199254740991 rows certified",
    ],
    [
      "is of a state that no run has",
      () => ({ state: "ABSENT" }),
      "the manifest says that the run is ABSENT",
    ],
  ])("is never COMPLETE: it %s", async (_, change, why) => {
    await claim(change);
    const run = await command("runs");
    expect([run.status, run.stderr]).toEqual([
      5,
      expect.stringContaining("the manifest contradicts itself: "),
    ]);
    expect(run.stderr).toContain(why);
    expect(run.stdout).toMatch(/^alpha\/2022-01-01 {2}damaged$/m);
    expect((await command("runs", "--state", "COMPLETE")).stdout).not.toContain(name);
    const info = await command("status");
    expect([info.status, info.stdout]).toEqual([5, expect.stringContaining("1 damaged")]);
    expect(info.stdout).not.toContain("COMPLETE");
    for (const more of [[], ["--any-state"]]) {
      const removed = await older(...more);
      expect([removed.status, removed.stdout]).toEqual([5, "would remove 0 runs, 0 B\n"]);
      expect(removed.stderr).toContain("the age of its run is unknown");
    }
    expect((await command("verify")).stdout).toContain(`${name}  DAMAGED`);
  });
});

describe("the age of a run", () => {
  const day = 86_400_000_000_000n;
  const now = () => BigInt(Date.now()) * 1_000_000n;
  const ended = (ended: bigint | null, started: bigint | null) =>
    claim(({ run }) => ({
      run: { ...run, ended: ended?.toString() ?? null, started: started?.toString() ?? null },
      committedAt: new Date().toISOString(),
    }));

  test("is not that of an end before its start: a gateway that says 1970 removes nothing", async () => {
    await ended(0n, now() - day);
    expect(await older()).toEqual({ status: 0, stdout: "would remove 0 runs, 0 B\n", stderr: "" });
    await ended(0n, now() - 40n * day);
    expect((await older()).stdout).toContain(`would remove ${name}`);
  });

  test("is no more than that of its newest row", async () => {
    const { last } = under.manifest.tables.fills!.proven!.parquet.at(-1)!;
    await ended(0n, 0n);
    const since = (ns: bigint) => `${(now() - ns) / 1_000_000_000n}s`;
    const removed = async (age: string) => (await command("rm", "--older-than", age, "--dry-run")).stdout;
    expect(await removed(since(BigInt(last.ts) - day))).toContain("would remove 0 runs");
    expect(await removed(since(BigInt(last.ts) + 400n * day))).toContain(`would remove ${name}`);
  });

  test("is that of its last commit where nothing bears out its end", async () => {
    await claim(({ run, tables }) => ({
      run: { ...run, ended: "0", started: null },
      tables: Object.fromEntries(
        Object.entries(tables).map(([table, { attempt }]) => [
          table,
          { state: "INCOMPLETE", grain: "all", proven: null, attempt: failed(attempt.at) },
        ]),
      ),
      state: "INCOMPLETE",
      committedAt: new Date().toISOString(),
    }));
    expect((await older("--any-state")).stdout).toBe("would remove 0 runs, 0 B\n");
  });

  test("is unknown of an end that is far off, which is said", async () => {
    await ended(now() + 400n * day, now() - 400n * day);
    const { status, stdout, stderr } = await older();
    expect([status, stdout]).toEqual([0, "would remove 0 runs, 0 B\n"]);
    expect(stderr).toBe(
      "1 run was kept because its end or its rows are in the future; name a run to remove it\n",
    );
  });

  function failed(when: string): unknown {
    const error = { code: "incomplete", message: "rows are missing", hint: null, at: when };
    const holding = { ...under.manifest.tables.fills!.proven!, segments: [], parquet: [], certificate: null };
    const { state: _, ...rest } = holding;
    return { outcome: "INCOMPLETE", at: when, behindSince: when, error, notes: [], holding: rest };
  }
});

describe("rm of a run whose manifest is damaged", () => {
  test("says what is freed, as the files have it", async () => {
    const whole = await command("rm", "--dry-run", name, "--json");
    const bytes = everyFile(under.manifest).reduce((sum, { storedBytes }) => sum + storedBytes, 0);
    expect(JSON.parse(whole.stdout).bytes).toBe(bytes);
    await writeFile(under.archive.layout.manifestFile(worldRun), "{");
    expect(await command("rm", "--dry-run", name, "--json")).toMatchObject({ stdout: whole.stdout });
    const { stdout } = await command("rm", name, "--json");
    expect(JSON.parse(stdout)).toMatchObject({ removed: [{ ...worldRun, bytes }], bytes });
  });

  test("goes by no size that a manifest claims", async () => {
    const before = JSON.parse((await command("rm", "--dry-run", name, "--json")).stdout).bytes;
    await claim((manifest) => {
      Object.assign(manifest.tables.fills!.proven!.segments[0]!, { storedBytes: Number.MAX_SAFE_INTEGER });
      return {};
    });
    expect(JSON.parse((await command("rm", "--dry-run", name, "--json")).stdout).bytes).toBe(before);
  });
});

describe("something else in the place of a folder", () => {
  test("of an instance's manifests: a file hides no run quietly", async () => {
    await rm(at("runs", "alpha"), { recursive: true });
    await writeFile(at("runs", "alpha"), "x");
    for (const args of [
      ["runs"],
      ["status"],
      ["verify", "alpha"],
      ["maintain", "rebuild", "--links"],
      ["rm", "--older-than", "1d"],
    ]) {
      const { status, stderr } = await command(...args);
      expect([args, status, stderr]).toEqual([
        args,
        5,
        expect.stringContaining("this is a file, not a folder"),
      ]);
    }
    const { status, stdout } = await command("verify");
    expect([status, stdout]).toEqual([
      5,
      expect.stringContaining("damaged: places: this is a file, not a folder"),
    ]);
  });

  test("a stray file that was never an instance's folder stays a stray file", async () => {
    await writeFile(at("runs", "notes"), "x");
    expect(await command("runs")).toMatchObject({ status: 0, stderr: "" });
    expect((await command("verify")).stdout).toContain("notice: foreign: 1 path");
  });

  test.each([
    ["runs", "alpha"],
    ["data", ""],
    ["data", "alpha"],
  ])("verify tells a link at %s/%s once a run, with what to do about it", async (...parts) => {
    await linkAway(...parts.filter((part) => part !== ""));
    for (const more of [[], ["--repair"]]) {
      const { status, stdout } = await command("verify", ...more);
      expect(status).toBe(5);
      const ofRun = stdout.slice(stdout.indexOf(`\n${name}  DAMAGED`));
      expect(ofRun.match(/^ {2}damaged: /gm)).toHaveLength(1);
      expect(ofRun).toContain("this is a symbolic link, not a folder");
      expect(ofRun).toContain("\n  next: Replace the link with what it points to, or remove it.");
      expect(stdout).not.toContain("runvault rm");
    }
  });

  test("info reads no cache through a link, and says so", async () => {
    await rm(at("cache"), { recursive: true, force: true });
    await symlink("/usr", at("cache"));
    const { status, stdout, stderr } = await command("status");
    expect([status, stderr]).toEqual([5, expect.stringContaining("this is a symbolic link, not a folder")]);
    expect(stdout).not.toContain("cache");
  });

  test.each([[[]], [["alpha"]]])(
    "work behind a link at pending/%s is not left out without a word",
    async (below) => {
      await mkdir(at("pending"), { recursive: true });
      await rm(at("pending", ...below), { recursive: true, force: true });
      await symlink(under.folder, at("pending", ...below));
      for (const args of [["runs"], ["status"]]) {
        const { status, stdout, stderr } = await command(...args);
        expect([status, stderr]).toEqual([5, expect.stringContaining(at("pending", ...below))]);
        expect(stdout).toContain("COMPLETE");
      }
    },
  );
});

describe("work that is not committed", () => {
  const pending = (...parts: string[]) => join(under.archive.layout.pendingDir(worldRun), ...parts);

  test.each([
    ["of another run", { instanceId: "beta", runId: "x", generation: 1 }],
    ["of no generation", { ...worldRun, generation: -1 }],
  ])("is shown beside a journal %s, and keeps its run", async (_, head) => {
    await mkdir(pending(), { recursive: true });
    await writeFile(pending("journal.ndjson"), `${JSON.stringify(head)}\n`);
    await writeFile(pending("fills.g2.000001.ndjson.zst"), "abc");
    expect((await command("runs", "--state", "pending")).stdout).toContain(
      `${name}  pending: 1 segment, 3 B`,
    );
    const { stdout } = await older();
    expect(stdout).toContain("would remove 0 runs");
    expect(stdout).toContain(
      `kept 1 old run because of its state; --any-state removes it as well:\n  ${name}  pending`,
    );
  });
});

describe("rows whose manifest is gone", () => {
  test("are told by verify, with and without links to them, and rm is not the only way on", async () => {
    await rm(at("runs", "alpha"), { recursive: true });
    for (const links of [true, false]) {
      if (!links) await rm(at("tables"), { recursive: true });
      const { stdout } = await command("verify");
      expect(stdout).toContain(`${name}  not archived\n`);
      expect(stdout).toContain(
        `  next: If the run was to be removed, \`runvault rm --archive ${under.archive.dir}\` removes the rest; if not, restore its manifest below runs/ from a backup.\n`,
      );
    }
    expect((await command("verify")).stdout).toContain(
      "files of a run that is not archived (data/alpha/2022-01-01)",
    );
    expect((await stat(at("data", "alpha", "2022-01-01"))).isDirectory()).toBe(true);
  });
});
