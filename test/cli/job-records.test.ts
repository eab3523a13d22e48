// @module-tag slow
import { mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { type Archive, openArchive } from "../../src/archive/archive.ts";
import { lineText } from "../../src/cli/pipeline/job-line-text.ts";
import { lockJob } from "../../src/pipeline/record/job-lock.ts";
import type { AfterLine, ResultLine, RunLine } from "../../src/pipeline/record/job-record.ts";
import { openRecord } from "../../src/pipeline/record/open-record.ts";
import { beginLine, failedRun, resultLine, writeRecord } from "../fixtures/archive/job-records.ts";
import { makeMixedArchive } from "../fixtures/archive/mixed-archive.ts";
import { runInside } from "../fixtures/command/command-inside.ts";

let folder: string;
let archive: Archive;
let file: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-test-"));
  const dir = join(folder, "archive");
  await makeMixedArchive(dir);
  archive = await openArchive(dir);
  file = join(folder, "nightly.yaml");
  await writeFile(
    file,
    `version: 1
name: nightly
gateway: { url: http://127.0.0.1:9/api/v1, keeps: 14d }
archive: archive
runs: {}
schedule: { cron: "15 2 * * *", timezone: UTC }
`,
  );
});
afterAll(() => rm(folder, { recursive: true, force: true }));
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: new Date("2022-01-20T10:00:00Z") });
});
afterEach(async () => {
  vi.useRealTimers();
  await rm(archive.layout.jobsDir, { recursive: true, force: true });
});

const command = (...args: string[]) => runInside(args, { env: { RUNVAULT_ARCHIVE: archive.dir } });

/** The record of a night that began at midnight of a day and took ten minutes. */
function night(day: number, over: Partial<ResultLine> = {}, ...runs: RunLine[]) {
  const at = `2022-01-${String(day).padStart(2, "0")}T00:10:00.000Z`;
  return writeRecord(archive.layout, beginLine(day), ...runs, resultLine({ at, ...over }));
}

describe("runvault jobs", () => {
  test("lists executions newest first, with what each came to", async () => {
    await night(17, { results: { archived: 3, unchanged: 7 }, rows: 1234 });
    await night(18, { exit: 3, results: { failed: 1 } });
    await writeRecord(archive.layout, beginLine(19, { job: "weekly" }));
    expect(await command("jobs")).toEqual({
      status: 0,
      stderr: "",
      stdout: `\
job      id        started (UTC)           took  result          archived
-------  --------  ----------------  ----------  --------------  --------
weekly   0000000j  2022-01-19 00:00              died
nightly  0000000i  2022-01-18 00:00  10 min 0 s  gateway failed         0
nightly  0000000h  2022-01-17 00:00  10 min 0 s  ok                     3
`,
    });
    const ids = async (...args: string[]) => {
      const { executions, more } = JSON.parse((await command("jobs", "--json", ...args)).stdout);
      return [executions.map(({ id, words }: { id: string; words: string }) => `${id} ${words}`), more];
    };
    expect(await ids("--failed")).toEqual([["0000000j died", "0000000i gateway failed"], false]);
    expect(await ids("nightly", "--limit", "1")).toEqual([["0000000i gateway failed"], true]);
    expect((await command("jobs", "nightly", "--limit", "1")).stdout).toContain("--limit N lists more");
    expect((await command("jobs", "nightly", "--wide")).stdout).toMatch(/1,234 .* nightly\.yaml\n$/);
  });

  test("says where there are none, and which names there are", async () => {
    expect(await command("jobs")).toMatchObject({ status: 0, stdout: "no executions\n" });
    expect(await command("jobs", "--failed")).toMatchObject({ status: 0, stdout: "no failed executions\n" });
    expect(await command("jobs", "show", "last")).toMatchObject({ status: 2 });
    await night(17);
    const { status, stderr } = await command("jobs", "nigthly");
    expect([status, stderr]).toEqual([2, expect.stringContaining("Did you mean nightly?")]);
    expect((await command("jobs", "nightly", "0000000h")).stderr).toContain("one argument too many");
  });

  test("tells one execution in full, by its id, the beginning of it, or as the last", async () => {
    const trouble = {
      key: "table:alpha/2022-01-01/orders",
      kind: "table" as const,
      instance: "alpha",
      run: "2022-01-01",
      table: "orders",
      level: "INCOMPLETE",
      text: "orders of alpha/2022-01-01 fell to INCOMPLETE.\u001b[2J",
      hint: "Ask later.",
      since: "2022-01-19T00:00:00.000Z",
      told: null,
      mended: null,
    };
    await night(18);
    await night(19, { exit: 3, results: { failed: 1 }, troubles: [trouble], grownBytes: -5 }, failedRun);
    const told = await command("jobs", "show", "last");
    expect(told).toEqual({
      status: 0,
      stderr: "",
      stdout: `\
execution  0000000j of nightly: gateway failed (exit status 3)
job file   nightly.yaml
from       http://127.0.0.1:8080/api/v1
by         runvault 0.0.0, pid ${process.pid} on ${beginLine(1).host}
started    2022-01-19 00:00:00 UTC
ended      2022-01-19 00:10:00 UTC, after 10 min 0 s
plan       3 unchanged
runs       1 failed
rows       0 in 0 B
gateway    4 requests, 0 retries
memory     100 MB at most
archive    3 COMPLETE
disk       the archive shrank by 5 B, 1.0 GB free afterwards
trouble    orders of alpha/2022-01-01 fell to INCOMPLETE.\\u001b[2J (since 2022-01-19 00:00 UTC)
           Ask later.

run               plan     result  state       rows    size   took
----------------  -------  ------  ----------  ----  ------  -----
alpha/2022-01-01  changed  failed  INCOMPLETE    12  3.4 kB  2.0 s

alpha/2022-01-01  orders: INCOMPLETE: server_error: the gateway answered 500
alpha/2022-01-01  hint: Ask later.
`,
    });
    expect(await command("jobs", "show", "0000000j")).toEqual(told);
    expect(await command("jobs", "show")).toEqual(told);
    expect((await command("jobs", "show", "0000000i")).stdout).toContain(": ok\n");
    const { status, stderr } = await command("jobs", "show", "0");
    expect([status, stderr]).toEqual([
      2,
      expect.stringContaining("0000000i (nightly, 2022-01-18 00:00 UTC)"),
    ]);
    expect((await command("jobs", "show", "zz")).stderr).toContain('no execution has the id "zz"');
    const json = JSON.parse((await command("jobs", "show", "last", "--json")).stdout);
    expect(json).toMatchObject({
      id: "0000000j",
      state: "ended",
      runs: [{ run: "2022-01-01" }],
      result: { exit: 3 },
    });
  });

  test("reads the archive of a job file, and only that job's executions", async () => {
    await night(18);
    await writeRecord(archive.layout, beginLine(19, { job: "weekly" }));
    const alone = (...args: string[]) => runInside(args);
    expect((await alone("jobs", file, "--json")).stdout).not.toContain("weekly");
    expect((await alone("jobs", "show", file)).stdout).toContain("0000000i of nightly");
    expect((await alone("jobs", "show", file, "0000000i")).stdout).toContain("0000000i of nightly");
    expect((await alone("jobs", "show", file, "0000000j")).stderr).toContain("no execution has the id");
    // the archive of the file, whatever the environment names
    const elsewhere = await runInside(["jobs", file], { env: { RUNVAULT_ARCHIVE: "/nowhere" } });
    expect(elsewhere).toMatchObject({ status: 0, stderr: "" });
  });

  // every night had "removed 0 runs, 0 B", and no run had its name
  test("retention is shown where it removed something, with the runs", async () => {
    const kept = (named: { instance: string; run: string; bytes: number }[]): AfterLine => ({
      ...{ kind: "after", at: "2022-01-19T00:00:00Z", what: "keep", out: null, result: "done", rows: null },
      ...{ seconds: 1, error: null, removed: { runs: named.length, bytes: 5, garbage: 0, named } },
    });
    const none = kept([]);
    const one = kept([{ instance: "a/b", run: "r1", bytes: 5 }]);
    await writeRecord(archive.layout, beginLine(19), none, one, resultLine());
    const { stdout } = await command("jobs", "show");
    expect(stdout.match(/^(?:then| {9}).*$/gm)?.filter((line) => !line.includes("Ask"))).toEqual([
      "then       retention: removed 1 run, 5 B, 1.0 s",
      "           a%2Fb/r1  5 B",
    ]);
    const session = { globals: { quiet: false }, paint: String, toCopy: String } as never;
    expect(lineText("nightly", none, session)).toBe("");
    expect(lineText("nightly", one, session)).toBe(
      "removed a%2Fb/r1  5 B\nretention: removed 1 run, 5 B in 1.0 s\n",
    );
  });

  // the hint said the same as the error
  test.each([["jobs"], ["jobs", "show"]])(
    "%s %s of a file that has not run says what runs it",
    async (...args) => {
      await writeRecord(archive.layout, beginLine(19, { job: "weekly" }));
      const { status, stderr } = await runInside([...args, file]);
      expect([status, stderr]).toEqual([2, expect.stringContaining("the job nightly has not run yet")]);
      expect(stderr).toContain(`hint: \`runvault run ${file}\` runs it.`);
    },
  );

  // ./archive was read, which belonged to another job
  test.each([["jobs"], ["jobs", "show"], ["jobs", "nightly"]])(
    "%s %s outside an archive says so, and looks for no other",
    async (...args) => {
      const { status, stdout, stderr } = await runInside(args);
      expect([status, stdout]).toEqual([2, ""]);
      expect(stderr).toContain("this folder is not an archive, and no job is named");
    },
  );

  test("tells of what cannot be read, and ends with 5", async () => {
    const damaged = await night(17);
    await writeFile(damaged, "{");
    await night(18);
    const { status, stdout, stderr } = await command("jobs");
    expect([status, stdout]).toEqual([5, expect.stringContaining("0000000i")]);
    expect(stderr).toContain(damaged);
  });

  test("tells the last that can be read, and that a later one cannot", async () => {
    await writeFile(await night(17), "{");
    await night(18);
    // nobody asked for the one before
    expect(await command("jobs", "show")).toMatchObject({ status: 0, stderr: "" });
    const damaged = await night(19);
    await writeFile(damaged, "{");
    const { status, stdout, stderr } = await command("jobs", "show");
    expect([status, stdout]).toEqual([5, expect.stringContaining("0000000i")]);
    expect(stderr).toContain(damaged);
  });

  test.each(["last", "0000000h", "zzz"])(
    "does not say that %s is none where a record cannot be read",
    async (id) => {
      const damaged = await night(17);
      await writeFile(damaged, "{");
      const { status, stdout, stderr } = await command("jobs", "show", id);
      expect([status, stdout]).toEqual([5, ""]);
      expect(stderr).toContain(damaged);
      expect(stderr).not.toMatch(/no job has run|no execution/);
    },
  );
});

describe("runvault status", () => {
  test("of a job file: success, result, next start, runs, what is unproven, and the disk", async () => {
    await night(19, { grownBytes: 1000, freeBytes: 5 });
    await night(20, {
      exit: 4,
      error: { code: "unverified", message: "not proven", hint: "See `runvault runs`.", exit: 4 },
    });
    const { status, stdout, stderr } = await command("status", file);
    expect([status, stderr]).toEqual([0, ""]);
    const lines = stdout.replaceAll(folder, "").split("\n");
    expect(lines.slice(0, 8)).toEqual([
      "job           nightly (/nightly.yaml)",
      "last success  2022-01-19 00:10 UTC, 33 h 50 min ago, after 10 min 0 s",
      "last result   incomplete (exit status 4), 2022-01-20 00:10 UTC, 9 h 50 min ago",
      "              unverified: not proven",
      "              See `runvault runs`.",
      "              `runvault jobs show 0000000k` shows it in full",
      "next start    2022-01-21 02:15 UTC",
      "",
    ]);
    expect(
      lines
        .slice(8)
        .join("\n")
        .replace(/[\d.]+ [TGM]B free: /, "FREE free: "),
    ).toMatchInlineSnapshot(`
      "archive       /archive
      runs          3: 1 COMPLETE, 1 OPEN, 1 INCOMPLETE
      unproven      1 run
                    alpha/2022-01-02  fills and 1 more: INCOMPLETE: stream_cut: cut after 900 bytes ([1640995200000000001, 1641064430769230772)); for 0 s
                    \`runvault archive alpha/2022-01-02\` fetches what is missing
      expiring      1 unproven run: 1 already forgotten by the gateway
      disk          FREE free: over 10 years at 500 B a night
      "
    `);
    const json = JSON.parse((await command("status", file, "--json")).stdout);
    expect(json).toMatchObject({
      ok: true,
      jobs: [
        {
          job: "nightly",
          lastSuccess: { exit: 0 },
          lastResult: { exit: 4 },
          late: null,
          maxAgeMs: 172_800_000,
        },
      ],
      disk: { grownPerNight: 500 },
    });
  });

  test.each([
    [19, 0, null],
    [18, 4, "too_old"],
    [0, 4, "never"],
  ])("ends as a probe: last success on %i, exit status %i", async (day, status, late) => {
    if (day > 0) await night(day);
    await night(20, { exit: 3 });
    const told = await command("status", file, "--json");
    const { ok, jobs } = JSON.parse(told.stdout);
    expect([told.status, ok, jobs[0].late]).toEqual([status, late === null, late]);
  });

  test.each([
    ["26h", 4],
    ["2d", 0],
  ])("of an archive, with --max-age %s", async (maxAge, status) => {
    await night(19);
    expect((await command("status")).status).toBe(0);
    const told = await command("status", "--max-age", maxAge);
    expect(told.status).toBe(status);
    expect(told.stdout.includes("late          the last success is older than 26 h 0 min")).toBe(
      status === 4,
    );
  });

  test("where no job has run ends with 0, and with 4 where one was expected", async () => {
    expect(await command("status")).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/^jobs +none has run in this archive\n/),
    });
    expect((await command("status", "--max-age", "26h")).status).toBe(4);
    const other = join(folder, "other.yaml");
    const text = "version: 1\nname: other\ngateway: { url: http://127.0.0.1:9 }\narchive: none\nruns: {}\n";
    await writeFile(other, text);
    const { status, stdout } = await command("status", other);
    expect([status, stdout]).toEqual([4, expect.stringContaining("which does not exist yet")]);
    expect(stdout).toMatch(/last success +never\n[\s\S]*disk +[\d.,]+ .B free\n/);
  });

  test("tells what is running, and what died", async () => {
    await night(18);
    await writeRecord(archive.layout, beginLine(19));
    expect((await command("status")).stdout).toMatch(
      /died +begun 2022-01-19 00:00 UTC, 34 h 0 min ago, pid \d+ on .+; `runvault jobs show 0000000j`/,
    );
    await using _lock = await lockJob(archive.layout, "nightly");
    await using _record = await openRecord(
      archive.layout,
      beginLine(20, { deadline: "2022-01-20T05:00:00.000Z" }),
    );
    expect((await command("status")).stdout).toMatch(
      /running +since 2022-01-20 00:00 UTC, pid \d+ on .+, to end by 2022-01-20 05:00 UTC\n/,
    );
    expect((await command("status")).stdout).not.toContain("died");
  });

  test("names the troubles of the last execution, and not only how many there are", async () => {
    const trouble = {
      ...{ key: "disk", kind: "disk" as const, instance: null, run: null, table: null, level: "2" },
      ...{ text: "the disk of the archive has room for 2 more nights", hint: "Free some space." },
      ...{ since: "2022-01-19T00:00:00.000Z", told: null, mended: null },
    };
    const over = { ...trouble, key: "job", kind: "job" as const, text: "over", mended: trouble.since };
    await night(19, { troubles: [trouble, over] });
    expect((await command("status", file)).stdout).toMatch(
      /troubles +1 at the end of the last execution\n +the disk of the archive has room for 2 more nights \(since 2022-01-19/,
    );
    const { jobs } = JSON.parse((await command("status", file, "--json")).stdout);
    expect(jobs[0].troubles).toMatchObject([{ key: "disk", hint: "Free some space." }]);
  });

  // a person who looks at a job has not its secrets: they were asked for, and the command ended with 2
  test("status, jobs and units work where no variable and no file with a secret is there", async () => {
    const secret = join(folder, "secret.yaml");
    await writeFile(
      secret,
      `version: 1
name: nightly
gateway: { url: "\${NO_SUCH_URL}", token: { env: NO_SUCH_TOKEN }, profile: no-such-profile.yaml, tls: { ca: "\${NO_CA}" } }
archive: archive
runs: {}
after: { exports: [{ tables: [fills], out: "\${NO_SUCH_FOLDER}/fills.parquet" }] }
notify: { webhook: { url_env: NO_SUCH_HOOK }, heartbeat: { url_env: NO_SUCH_BEAT } }
`,
    );
    await night(19);
    expect(await command("status", secret)).toMatchObject({ status: 0, stderr: "" });
    expect(await command("jobs", secret)).toMatchObject({ status: 0, stderr: "" });
    expect((await command("check", secret)).status).toBe(2);
    // what the archive cannot be found without is asked for still
    await writeFile(
      secret,
      (await readFile(secret, "utf8")).replace("archive: archive", `archive: "\${NO_DIR}"`),
    );
    const { status, stderr } = await command("status", secret);
    expect([status, stderr]).toEqual([2, expect.stringContaining("NO_DIR")]);
    expect(stderr).not.toContain("NO_SUCH");
    const units = join(folder, "units.yaml");
    await writeFile(
      units,
      (await readFile(file, "utf8")).replace("keeps: 14d", "token: { env: NO_SUCH_TOKEN }"),
    );
    const printed = await command("schedule", "--print", "kubernetes", units);
    expect([printed.status, printed.stdout]).toEqual([0, expect.stringContaining("NO_SUCH_TOKEN")]);
  });

  test("of a bad job file says what is wrong with it, and ends with 2", async () => {
    const bad = join(folder, "bad.yaml");
    await writeFile(bad, "version: 1\nname: Bad\n");
    const { status, stdout, stderr } = await command("status", bad);
    expect([status, stdout]).toEqual([2, ""]);
    expect(stderr).toContain("bad.yaml:2:7: name must be");
    expect((await command("status", bad, "--json")).status).toBe(2);
  });

  test("tells of a manifest and of a record that cannot be read, and ends with 5", async () => {
    await night(19);
    await symlink(file, join(archive.layout.recordsDir("nightly"), "20220120T000000.000Z-0000000k.ndjson"));
    const { status, stderr } = await command("status");
    expect([status, stderr]).toEqual([5, expect.stringContaining("a symbolic link, not a file")]);
    expect(JSON.parse((await command("status", "--json")).stdout)).toMatchObject({ ok: false });
  });
});

test("info counts the records, and rm, rebuild, gc and verify leave them alone", async () => {
  await night(19);
  const record = await night(18, { exit: 4 });
  const lock = await lockJob(archive.layout, "nightly");
  expect((await command("status")).stdout).toMatch(/\njob records +\d[\d.]* k?B\n/);
  const before = (await command("jobs")).stdout;
  expect(await command("gc", "--grace", "0s")).toMatchObject({ stderr: "" });
  // held, and then of a job that has records
  await lock[Symbol.asyncDispose]();
  expect((await command("gc", "--grace", "0s")).stdout).toMatch(/^removed 0 files, 0 B\n/);
  expect((await command("verify")).stdout).not.toMatch(/jobs\/|locks\//);
  expect((await command("jobs")).stdout).toBe(before);
  await writeFile(`${record}.bak`, "mine");
  expect((await command("verify")).stdout).toContain("jobs/nightly/20220118T000000.000Z-0000000i.ndjson.bak");
  expect((await command("gc", "--grace", "0s")).status).toBe(0);
});

test("gc removes the lock of a job without records, unless an execution holds it", async () => {
  const names = async () => (await readdir(archive.layout.locksDir)).filter((name) => name.startsWith("."));
  const lock = await lockJob(archive.layout, "nightly");
  expect((await command("gc", "--grace", "0s")).status).toBe(0);
  expect(await names()).toEqual([".job-nightly.duckdb"]);
  await lock[Symbol.asyncDispose]();
  // at the clock's day everything here is of the future
  vi.useRealTimers();
  expect((await command("gc")).status).toBe(0);
  expect(await names()).toEqual([".job-nightly.duckdb"]);
  expect((await command("gc", "--grace", "0s", "--dry-run")).stdout).toContain(
    "locks of runs, readers and jobs",
  );
  expect(await names()).toEqual([".job-nightly.duckdb"]);
  expect((await command("gc", "--grace", "0s")).status).toBe(0);
  expect(await names()).toEqual([]);
});
