// @module-tag slow
import { cp, mkdir, mkdtemp, readdir, rename, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Archive, openArchive } from "../../src/archive/archive.ts";
import { everyFile } from "../../src/archive/manifest/manifest-files.ts";
import type { Terminal } from "../../src/cli/output/terminal.ts";
import { formatRun } from "../../src/model/run-argument.ts";
import { makeMixedArchive, mixedRuns } from "../fixtures/archive/mixed-archive.ts";
import { runInside } from "../fixtures/command/command-inside.ts";

const { whole, cut, growing, stopped } = mixedRuns;
const names = { whole: "alpha/2022-01-01", cut: "alpha/2022-01-02", stopped: "alpha/2022-01-04" };

let folder: string;
let dir: string;
let archive: Archive;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-listings-"));
  await makeMixedArchive(join(folder, "made"));
});
afterAll(() => rm(folder, { recursive: true }));
beforeEach(async () => {
  dir = join(folder, "archive");
  await rm(dir, { recursive: true, force: true });
  await cp(join(folder, "made"), dir, { recursive: true, preserveTimestamps: true });
  archive = await openArchive(dir);
});

const command = (...args: string[]) => runInside([...args, "--archive", dir]);
const onTerminal = (columns: number, ...args: string[]) => {
  const terminal: Partial<Terminal> = { stdoutIsTerminal: true, hasColours: true, columns };
  return runInside([...args, "--archive", dir], terminal);
};
const listed = async (...args: string[]): Promise<Record<string, unknown>[]> =>
  JSON.parse((await command("runs", "--json", ...args)).stdout).runs;
const idsOf = async (...args: string[]) => (await listed(...args)).map(({ runId }) => runId);

describe("runs", () => {
  test("lists committed runs with size and commit time, and runs of which something is pending", async () => {
    const runs = await listed();
    const manifest = (await archive.manifest(whole))!;
    const bytes = everyFile(manifest).reduce((sum, { storedBytes }) => sum + storedBytes, 0);
    expect(runs).toMatchObject([
      { ...whole, state: "COMPLETE", bytes, committedAt: "2022-06-01T10:30:00.000Z", pending: null },
      { ...cut, state: "INCOMPLETE", pending: null },
      {
        ...stopped,
        ...{ state: "pending", status: null, generation: null, committedAt: null, rows: 0, bytes: 0 },
        pending: {
          ...{ isCommitted: false, segments: 3, bytes: expect.any(Number) },
          changedAt: "2022-06-04T10:31:00.000Z",
          command: `runvault archive --archive ${dir} ${names.stopped}`,
        },
      },
      { ...growing, state: "OPEN" },
    ]);
    const { status, stdout } = await command("runs");
    expect(status).toBe(0);
    expect(stdout).toMatch(/^alpha\/2022-01-01 +COMPLETE +50 +[\d.]+ kB +2022-06-01 10:30$/m);
    expect(stdout).toContain(
      `\nalpha/2022-01-04  pending: 3 segments, 1.5 kB, last written 2022-06-04 10:31 UTC; nothing committed yet; \`runvault archive --archive ${dir} alpha/2022-01-04\` continues it\n`,
    );
  });

  test("--state takes some of them, in any letters, and those with pending work", async () => {
    expect(await idsOf("--state", "complete,INCOMPLETE")).toEqual([whole.runId, cut.runId]);
    expect(await idsOf("--state", "pending")).toEqual([stopped.runId]);
    expect((await command("runs", "--state", "UNVERIFIED")).stdout).toBe(
      "no runs in these states; 4 runs in other states\n",
    );
    const wrong = await command("runs", "--state", "COMPLETED");
    expect([wrong.status, wrong.stderr]).toEqual([
      2,
      expect.stringContaining('names an unknown state: "COMPLETED" (did you mean COMPLETE?)'),
    ]);
    expect((await command("runs", "--state", "OPEN", "--gateway", "http://127.0.0.1:1")).status).toBe(2);
  });

  test("INSTANCE lists an instance of which everything is pending", async () => {
    await rename(join(dir, "pending/alpha"), join(dir, "pending/gamma"));
    expect(await listed("gamma")).toMatchObject([{ instanceId: "gamma", state: "pending" }]);
    expect((await command("runs", "delta")).stderr).toContain('the archive has no runs of instance "delta"');
  });

  test("work in a scratch folder is seen with --scratch", async () => {
    const scratch = join(folder, "scratch");
    const { layout } = await openArchive(dir, { scratch });
    await mkdir(layout.scratch!, { recursive: true });
    await rename(join(dir, "pending"), layout.pendingRoot);
    expect(await idsOf("--state", "pending")).toEqual([]);
    const [run] = await listed("--state", "pending", "--scratch", scratch);
    expect(run).toMatchObject({ pending: { segments: 3, command: expect.stringContaining(" --scratch ") } });
  });

  test("what a kill behind a commit left is not unfinished, and a later generation is", async () => {
    const { generation } = (await archive.manifest(whole))!;
    const pending = archive.layout.pendingDir(whole);
    await mkdir(pending, { recursive: true });
    const journal = (next: number, more: object = {}) =>
      writeFile(
        join(pending, "journal.ndjson"),
        `${JSON.stringify({ kind: "open", ...whole, generation: next, ...more })}\n`,
      );
    await journal(generation);
    expect(await idsOf("--state", "pending")).toEqual([stopped.runId]);
    await journal(generation + 1);
    const [run] = await listed("--state", "pending");
    expect(run).toMatchObject({ ...whole, state: "COMPLETE", pending: { isCommitted: true, segments: 0 } });
    await journal(generation + 1, { remaps: true });
    expect((await command("runs")).stdout).toMatch(
      new RegExp(
        `pending: rows by another profile, .*\`runvault maintain rebuild .*${names.whole} --profile FILE\` starts it again`,
      ),
    );
  });

  test("a folder of work that is a link is not looked into", async () => {
    await rename(join(dir, "pending"), join(folder, "elsewhere"));
    await symlink(join(folder, "elsewhere"), join(dir, "pending"));
    expect(await idsOf("--state", "pending")).toEqual([]);
    await rm(join(folder, "elsewhere"), { recursive: true });
  });

  test("a manifest that cannot be read hides its own run alone", async () => {
    await writeFile(archive.layout.manifestFile(cut), "{");
    const { status, stdout, stderr } = await command("runs");
    expect([status, stderr]).toEqual([5, expect.stringContaining("archive_damaged")]);
    expect(stdout).toMatch(/^alpha\/2022-01-02 +damaged$/m);
    expect(await idsOf("--state", "damaged")).toEqual([cut.runId]);
  });

  test("on a terminal states have colours and long names are cut, which is said; a pipe gets them whole", async () => {
    const { stdout, stderr } = await onTerminal(72, "runs");
    const table = stdout.split("\n\n")[0]!;
    expect(table).toContain(" \u001b[32mCOMPLETE  \u001b[39m ");
    expect(table).toContain("\u001b[31mINCOMPLETE\u001b[39m");
    const lines = table.split("\n").map((line) => stripVTControlCharacters(line));
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(72);
    expect(table).toMatch(/^beta-.+…[^ ]+ /m);
    expect(stderr).toBe("1 of 4 names are shortened to fit; --wide shows them in full\n");
    for (const text of [(await onTerminal(72, "runs", "--wide")).stdout, (await command("runs")).stdout]) {
      expect(text).toContain(`${formatRun(growing)} `);
    }
  });

  test("fits 100 columns beside a name of usual length, and --wide has every column", async () => {
    const { stdout } = await command("runs", "alpha");
    const lines = stdout.split("\n\n")[0]!.split("\n");
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(100);
    const [header] = (await command("runs", "--wide")).stdout.split("\n");
    expect(header!.split(/ +/)).toEqual(
      "run state status rows size started ended committed generation pending".split(" "),
    );
  });
});

describe("verify", () => {
  test("names what is pending, which is no failure by itself", async () => {
    const { status, stdout } = await command("verify", names.whole);
    expect([status, stdout]).toEqual([0, expect.not.stringContaining("pending")]);
    const all = await command("verify");
    expect(all.stdout).toMatch(
      /^alpha\/2022-01-04 {2}pending: 3 segments, .*`runvault archive --archive \S+ alpha\/2022-01-04`/m,
    );
    const json = JSON.parse((await command("verify", "alpha", "--json")).stdout);
    expect(json.pending).toMatchObject([{ ...stopped, segments: 3 }]);
    expect(json.runs.map(({ run }: { run: object }) => run)).toEqual([whole, cut]);
  });

  test("of a run that is only pending says how to go on with it", async () => {
    const { status, stderr } = await command("verify", names.stopped);
    expect([status, stderr]).toEqual([
      2,
      expect.stringContaining(
        `hint: Nothing of it is committed yet: \`runvault archive --archive ${dir} alpha/2022-01-04\``,
      ),
    ]);
  });
});

describe("status", () => {
  test("tells what replaced files take, and so does rm", async () => {
    const sizeOf = async (path: string) => {
      const entries = await readdir(path, { recursive: true, withFileTypes: true });
      const files = entries.filter((entry) => entry.isFile());
      const found = await Promise.all(files.map((entry) => stat(join(entry.parentPath, entry.name))));
      return found.reduce((sum, { size }) => sum + size, 0);
    };
    expect(JSON.parse((await command("status", "--json")).stdout).contents.bytes.replaced).toBe(0);
    await command("maintain", "rebuild", names.whole);
    const { bytes } = JSON.parse((await command("status", "--json")).stdout).contents;
    expect(bytes.replaced).toBeGreaterThan(0);
    expect(bytes.segments + bytes.parquet + bytes.documents + bytes.replaced).toBe(
      await sizeOf(join(dir, "data")),
    );
    expect((await command("status")).stdout).toMatch(/^replaced +[\d.]+ kB, kept for readers/m);
    const removed = JSON.parse((await command("rm", names.whole, "--dry-run", "--json")).stdout);
    expect(removed.bytes).toBe(await sizeOf(archive.layout.dataDir(whole)));
  });

  test("sums up runs, rows, bytes and what is unproven", async () => {
    const { status, stdout } = await command("status", "--json");
    const manifests = await archive.manifests();
    const bytes = manifests.flatMap(everyFile).reduce((sum, { storedBytes }) => sum + storedBytes, 0);
    const told = JSON.parse(stdout);
    expect(status).toBe(0);
    expect(told).toMatchObject({
      archive: { dir, id: archive.id },
      jobs: [],
      runs: {
        total: 3,
        states: { COMPLETE: 1, OPEN: 1, INCOMPLETE: 1, QUARANTINED: 0 },
        damaged: 0,
        unproven: [
          {
            ...cut,
            ...{ state: "INCOMPLETE", since: "2022-06-02T10:30:00.000Z" },
            command: `runvault archive --archive ${dir} ${names.cut}`,
          },
        ],
      },
      contents: {
        format: 1,
        sources: [{ addresses: ["rows in memory"] }],
        instances: [
          { instanceId: "alpha", runs: 2 },
          { instanceId: growing.instanceId, runs: 1 },
        ],
        rows: { fills: 25 + 27, orders: 25 + 27, bars: 0 },
        files: new Set(manifests.flatMap(everyFile).map(({ file }, index) => `${index} ${file}`)).size,
        newestCommit: { ...growing, committedAt: "2022-06-03T10:30:00.000Z" },
        pending: [{ ...stopped, segments: 3 }],
        disks: [{ folder: dir, freeBytes: expect.any(Number) }],
      },
    });
    const { segments, parquet, documents, quarantine } = told.contents.bytes;
    expect(segments + parquet + documents + quarantine).toBe(bytes);
  });

  test("counts a manifest that cannot be read, and ends with 5", async () => {
    await writeFile(archive.layout.manifestFile(cut), "{");
    const { status, stdout, stderr } = await command("status");
    expect([status, stderr]).toEqual([5, expect.stringContaining("archive_damaged")]);
    expect(stdout).toContain("3: 1 COMPLETE, 1 OPEN, 1 damaged; also 1 pending, not committed yet\n");
  });
});

describe("rm", () => {
  const manifests = async () => (await archive.manifests()).map(formatRun);

  test("--older-than takes what is COMPLETE and ended that long ago, and says what it spares", async () => {
    const { status, stdout } = await command("rm", "--older-than", "90d");
    expect(status).toBe(0);
    expect(stdout).toMatch(
      /^removed alpha\/2022-01-01 {2}([\d.]+ kB)\nremoved 1 run, \1\nkept 2 old runs because of their state; --any-state removes them as well:\n {2}alpha\/2022-01-02 {2}INCOMPLETE\n {2}beta-.* {2}OPEN\n$/,
    );
    expect(await manifests()).toEqual([names.cut, formatRun(growing)]);
    await command("rm", "--older-than", "90d", "--any-state", "alpha");
    expect(await manifests()).toEqual([formatRun(growing)]);
  });

  test("goes by a run's end, and where nothing says when that was, by its last commit", async () => {
    const since = (text: string) => `${Math.floor((Date.now() - Date.parse(text)) / 1000)}s`;
    const older = async (before: string) => {
      const asked = ["rm", "--dry-run", "--any-state", "--json", "--older-than", since(before)];
      const { toRemove } = JSON.parse((await command(...asked)).stdout);
      return toRemove.map(({ runId }: { runId: string }) => runId);
    };
    expect(await older("2022-01-01T12:00Z")).toEqual([]);
    expect(await older("2022-01-02T12:00Z")).toEqual([whole.runId]);
    expect(await older("2022-06-02T12:00Z")).toEqual([whole.runId, cut.runId]);
    expect(await older("2022-06-05T12:00Z")).toEqual([whole.runId, cut.runId, growing.runId]);
  });

  test("--dry-run removes nothing, of runs named too, and fails where rm would", async () => {
    const before = (await readdir(dir, { recursive: true })).sort();
    const { status, stdout } = await command("rm", "--dry-run", names.whole, names.stopped);
    expect(status).toBe(0);
    expect(stdout).toMatch(
      /^would remove alpha\/2022-01-01 {2}[\d.]+ kB\nwould remove alpha\/2022-01-04 {2}[\d.]+ kB\nwould remove 2 runs, [\d.]+ kB\n$/,
    );
    expect((await command("rm", "--dry-run", "alpha/nope")).status).toBe(2);
    expect((await readdir(dir, { recursive: true })).sort()).toEqual(before);
  });

  test("a damaged manifest has no age", async () => {
    await writeFile(archive.layout.manifestFile(cut), "{");
    const { status, stderr } = await command("rm", "--older-than", "90d", "--any-state", "--dry-run");
    expect([status, stderr]).toEqual([5, expect.stringContaining("the age of its run is unknown")]);
  });

  test.each([
    [["--older-than", "90d", names.whole], "is a run"],
    [["--older-than", "1m"], "is ambiguous: 1m may be minutes or months; write 1min, or days, such as 30d"],
    [["--any-state", names.whole], "--any-state needs --older-than"],
    [[], "no run is named"],
    [["--older-than", "90d", "delta"], 'the archive has no runs of instance "delta"'],
  ])("%j is refused", async (args, message) => {
    const { status, stderr } = await command("rm", ...args);
    expect([status, stderr]).toEqual([2, expect.stringContaining(message)]);
  });
});

test.each([
  [
    ["export", "fills", "--out", "x.csv", "--instance", "a"],
    "unknown option '--instance'\n  hint: `runvault export --help` shows every option.",
  ],
  [["export", "--list"], "no table is named\n  hint: Name tables, or give --all-tables."],
  [
    ["--nonsense"],
    "unknown option '--nonsense'\n  hint: `runvault --help` and `runvault COMMAND --help` list",
  ],
  [["nonsense", "export"], "unknown command 'nonsense'\n  hint: `runvault --help` and"],
])("%j is told where its options are listed", async (args, message) => {
  const { status, stderr } = await runInside(args);
  expect([status, stderr]).toEqual([2, expect.stringContaining(message)]);
});

test("help for a command that is not there suggests one", async () => {
  const { status, stderr } = await runInside(["help", "archve"]);
  expect([status, stderr]).toEqual([
    2,
    expect.stringContaining("unknown command 'archve'\n  hint: Did you mean archive?"),
  ]);
  expect((await runInside(["help", "archive"])).stdout).toMatch(/^Usage: runvault archive /);
});
