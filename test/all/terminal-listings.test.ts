import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openArchive } from "../../src/archive/archive.ts";
import { beginLine, failedRun, resultLine, writeRecord } from "../fixtures/archive/job-records.ts";
import { makeMixedArchive } from "../fixtures/archive/mixed-archive.ts";
import { capture } from "../fixtures/command/capture.ts";
import { requires } from "../fixtures/command/requirement.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "rv-"));
  await makeMixedArchive(join(folder, "archive"));
});
afterAll(() => rm(folder, { recursive: true }));

/** What a command leaves on a terminal, but for what differs from machine to machine and from day to day. */
async function screen(
  columns: number,
  command: readonly string[],
  more: { colours?: boolean; env?: Record<string, string> } = {},
) {
  // named by the environment: commands to copy leave it out, whose length would move the ends of lines
  const env = { RUNVAULT_ARCHIVE: join(folder, "archive"), ...more.env };
  const text = await capture({ columns, rows: 60, command, ...more, env });
  return (
    text
      .replaceAll(folder, "/data")
      .replaceAll(/[\da-f]{8}-[\da-f-]{27}/g, "IDENTITY")
      .replace(/created [^\n]*(\n +(\d\d:\d\d )?UTC)?/, "created TODAY")
      .replaceAll(/\d{4} days/g, "MANY days")
      .replace(/[\d.]+ [MGT]B free/, "FREE free")
      // DuckDB's next version may pack otherwise
      .replaceAll(/\d+(?=\.\d kB| B\b)|(?<=\.)\d(?= kB)/g, (digits) => "9".repeat(digits.length))
      // how its colours are ended
      .replaceAll("\u001b", "^")
  );
}

describe.skipIf(!requires("tmux"))("a terminal", () => {
  test("of 80 columns: runs", async () => {
    expect(await screen(80, ["runs"])).toMatchInlineSnapshot(`
      "1 of 4 names are shortened to fit; --wide shows them in full
      run                         state       rows     size  committed (UTC)   pending
      --------------------------  ----------  ----  -------  ----------------  -------
      alpha/2022-01-01            COMPLETE      50  99.9 kB  2022-06-01 10:30
      alpha/2022-01-02            INCOMPLETE     0     99 B  2022-06-02 10:30
      alpha/2022-01-04            pending                                       9.9 kB
      beta-with-a-…dy-would-type  OPEN          54  99.9 kB  2022-06-03 10:30

      alpha/2022-01-02  fills: INCOMPLETE: stream_cut: cut after 900 bytes
          ([1640995200000000001, 1641064430769230772)); nothing is proven; failing
          since 2022-06-02T10:30:00.000Z
      alpha/2022-01-02  orders: INCOMPLETE: stream_cut: cut after 900 bytes
          ([1640995200000000001, 1641064430769230772)); nothing is proven; failing
          since 2022-06-02T10:30:00.000Z
      alpha/2022-01-04  pending: 3 segments, 9.9 kB, last written 2022-06-04 10:31
          UTC; nothing committed yet; \`runvault archive alpha/2022-01-04\` continues it"
    `);
  });

  test("of 120 columns: runs", async () => {
    expect(await screen(120, ["runs"])).toMatchInlineSnapshot(`
      "1 of 4 names are shortened to fit; --wide shows them in full
      run                                                                 state       rows     size  committed (UTC)   pending
      ------------------------------------------------------------------  ----------  ----  -------  ----------------  -------
      alpha/2022-01-01                                                    COMPLETE      50  99.9 kB  2022-06-01 10:30
      alpha/2022-01-02                                                    INCOMPLETE     0     99 B  2022-06-02 10:30
      alpha/2022-01-04                                                    pending                                       9.9 kB
      beta-with-a-long-name/2022-01-03…ith-a-name-that-nobody-would-type  OPEN          54  99.9 kB  2022-06-03 10:30

      alpha/2022-01-02  fills: INCOMPLETE: stream_cut: cut after 900 bytes ([1640995200000000001, 1641064430769230772));
          nothing is proven; failing since 2022-06-02T10:30:00.000Z
      alpha/2022-01-02  orders: INCOMPLETE: stream_cut: cut after 900 bytes ([1640995200000000001, 1641064430769230772));
          nothing is proven; failing since 2022-06-02T10:30:00.000Z
      alpha/2022-01-04  pending: 3 segments, 9.9 kB, last written 2022-06-04 10:31 UTC; nothing committed yet; \`runvault
          archive alpha/2022-01-04\` continues it"
    `);
  });

  test("of 120 columns: runs --wide", async () => {
    expect(await screen(120, ["runs", "--wide", "--state", "COMPLETE"])).toMatchInlineSnapshot(`
      "run               state     status    rows     size  started                         ended                           com
      mitted                 generation
      ----------------  --------  --------  ----  -------  ------------------------------  ------------------------------  ---
      ---------------------  ----------
      alpha/2022-01-01  COMPLETE  FINISHED    50  99.9 kB  2022-01-01T00:00:00.000000000Z  2022-01-02T00:00:00.000000000Z  202
      2-06-01T10:30:00.000Z           1"
    `);
  });

  test("of 80 columns: jobs, and one of them", async () => {
    const dir = join(folder, "jobs");
    const { layout } = await openArchive(dir, { create: true });
    const of = { host: "night-1", pid: 4711 };
    await writeRecord(layout, beginLine(1, of), resultLine({ results: { archived: 12, unchanged: 400 } }));
    const hint = "Run the same command again when the gateway is there.";
    const error = { code: "unreachable", message: "the gateway refused the connection", hint, exit: 3 };
    await writeRecord(
      layout,
      beginLine(2, of),
      failedRun,
      resultLine({ exit: 3, results: { failed: 1 }, error }),
    );
    await writeRecord(layout, beginLine(3, { ...of, job: "research-extract-of-fills" }));
    const env = { RUNVAULT_ARCHIVE: dir };
    expect(await screen(80, ["jobs"], { env })).toMatchInlineSnapshot(`
      "1 of 3 names are shortened to fit; --wide shows them in full
      job             id        started (UTC)           took  result          archived
      --------------  --------  ----------------  ----------  --------------  --------
      resear…f-fills  00000003  2022-01-03 00:00              died
      nightly         00000002  2022-01-02 00:00  10 min 0 s  gateway failed         0
      nightly         00000001  2022-01-01 00:00  10 min 0 s  ok                    12"
    `);
    expect(await screen(80, ["jobs", "show", "00000002"], { env })).toMatchInlineSnapshot(`
      "execution  00000002 of nightly: gateway failed (exit status 3)
      job file   nightly.yaml
      from       http://127.0.0.1:8080/api/v1
      by         runvault 0.0.0, pid 4711 on night-1
      started    2022-01-02 00:00:00 UTC
      ended      2022-01-01 00:10:00 UTC, after 10 min 0 s
      plan       3 unchanged
      runs       1 failed
      rows       0 in 9 B
      gateway    4 requests, 0 retries
      memory     100 MB at most
      archive    3 COMPLETE
      disk       the archive did not grow, FREE free afterwards
      error      unreachable: the gateway refused the connection
                 Run the same command again when the gateway is there.

      run               plan     result  state       rows    size   took
      ----------------  -------  ------  ----------  ----  ------  -----
      alpha/2022-01-01  changed  failed  INCOMPLETE    12  9.9 kB  2.0 s

      alpha/2022-01-01  orders: INCOMPLETE: server_error: the gateway answered 500
      alpha/2022-01-01  hint: Ask later."
    `);
  });

  test("of 80 columns: status", async () => {
    expect(await screen(80, ["status"])).toMatchInlineSnapshot(`
      "jobs          none has run in this archive

      archive       /data/archive
      identity      IDENTITY, format 1, created TODAY
      runs          3: 1 COMPLETE, 1 OPEN, 1 INCOMPLETE; also 1 pending, not committed
                    yet
      unproven      1 run
                    alpha/2022-01-02  fills and 1 more: INCOMPLETE: stream_cut: cut
                    after 900 bytes ([1640995200000000001, 1641064430769230772)); for
                    MANY days
                    \`runvault archive alpha/2022-01-02\` fetches what is missing
      disk          FREE free
      source        rows in memory
      rows          104: fills 52, orders 52
      data          99.9 kB in 27 files: segments 9.9 kB, Parquet 99.9 kB, documents
                    999 B
      pending       9.9 kB of 1 run, not committed: \`runvault runs --state pending\`
      newest        beta-with-a-long-name/2022-01-03-a-run-with-a-name-that-nobody-wou
      ld-type,
                    committed 2022-06-03 10:30 UTC

      instance               runs  rows     size  newest commit (UTC)
      ---------------------  ----  ----  -------  -------------------
      beta-with-a-long-name     1    54  99.9 kB  2022-06-03 10:30
      alpha                     2    50  99.9 kB  2022-06-02 10:30"
    `);
  });

  test("of 120 columns: status", async () => {
    expect(await screen(120, ["status"])).toMatchInlineSnapshot(`
      "jobs          none has run in this archive

      archive       /data/archive
      identity      IDENTITY, format 1, created TODAY
      runs          3: 1 COMPLETE, 1 OPEN, 1 INCOMPLETE; also 1 pending, not committed yet
      unproven      1 run
                    alpha/2022-01-02  fills and 1 more: INCOMPLETE: stream_cut: cut after 900 bytes ([1640995200000000001,
                    1641064430769230772)); for MANY days
                    \`runvault archive alpha/2022-01-02\` fetches what is missing
      disk          FREE free
      source        rows in memory
      rows          104: fills 52, orders 52
      data          99.9 kB in 27 files: segments 9.9 kB, Parquet 99.9 kB, documents 999 B
      pending       9.9 kB of 1 run, not committed: \`runvault runs --state pending\`
      newest        beta-with-a-long-name/2022-01-03-a-run-with-a-name-that-nobody-would-type, committed 2022-06-03 10:30 UTC

      instance               runs  rows     size  newest commit (UTC)
      ---------------------  ----  ----  -------  -------------------
      beta-with-a-long-name     1    54  99.9 kB  2022-06-03 10:30
      alpha                     2    50  99.9 kB  2022-06-02 10:30"
    `);
  });

  test("of 80 columns: verify", async () => {
    expect(await screen(80, ["verify"])).toMatchInlineSnapshot(`
      "alpha/2022-01-01  verified: 26 checks passed
      alpha/2022-01-02  not proven: 25 checks passed
        unproven: fills state: INCOMPLETE: stream_cut: cut after 900 bytes
            ([1640995200000000001, 1641064430769230772)); nothing is proven; failing
            since 2022-06-02T10:30:00.000Z
        unproven: orders state: INCOMPLETE: stream_cut: cut after 900 bytes
            ([1640995200000000001, 1641064430769230772)); nothing is proven; failing
            since 2022-06-02T10:30:00.000Z
        next: Archive the run again: only what is missing is fetched.
      beta-with-a-long-name/2022-01-03-a-run-with-a-name-that-nobody-would-type
          verified: 26 checks passed
      alpha/2022-01-04  pending: 3 segments, 9.9 kB, last written 2022-06-04 10:31
          UTC; nothing committed yet; \`runvault archive alpha/2022-01-04\` continues it"
    `);
  });

  test("of 120 columns: rm --older-than", async () => {
    expect(await screen(120, ["rm", "--older-than", "90d", "--dry-run"])).toMatchInlineSnapshot(`
      "would remove alpha/2022-01-01  99.9 kB
      would remove 1 run, 99.9 kB
      kept 2 old runs because of their state; --any-state removes them as well:
        alpha/2022-01-02  INCOMPLETE
        beta-with-a-long-name/2022-01-03-a-run-with-a-name-that-nobody-would-type  OPEN"
    `);
  });

  test("with colours: states of runs, in status, and what verify found", async () => {
    expect(await screen(100, ["runs", "alpha"], { colours: true })).toMatchInlineSnapshot(`
      "run               state       rows     size  committed (UTC)   pending
      ----------------  ----------  ----  -------  ----------------  -------
      alpha/2022-01-01  ^[32mCOMPLETE  ^[39m    50  99.9 kB  2022-06-01 10:30
      alpha/2022-01-02  ^[31mINCOMPLETE^[39m     0     99 B  2022-06-02 10:30
      alpha/2022-01-04  ^[33mpending   ^[39m                                    9.9 kB

      alpha/2022-01-02  fills: INCOMPLETE: stream_cut: cut after 900 bytes ([1640995200000000001,
          1641064430769230772)); nothing is proven; failing since 2022-06-02T10:30:00.000Z
      alpha/2022-01-02  orders: INCOMPLETE: stream_cut: cut after 900 bytes ([1640995200000000001,
          1641064430769230772)); nothing is proven; failing since 2022-06-02T10:30:00.000Z
      alpha/2022-01-04  pending: 3 segments, 9.9 kB, last written 2022-06-04 10:31 UTC; nothing committed
          yet; \`runvault archive alpha/2022-01-04\` continues it"
    `);
    const info = await screen(100, ["status"], { colours: true });
    expect(info.split("\n")[4]).toMatchInlineSnapshot(
      `"runs          3: 1 ^[32mCOMPLETE^[39m, 1 ^[32mOPEN^[39m, 1 ^[31mINCOMPLETE^[39m; also 1 ^[33mpending^[39m, not committed yet"`,
    );
    const verify = await screen(100, ["verify", "alpha"], { colours: true });
    expect(verify.split("\n").slice(0, 2)).toMatchInlineSnapshot(`
      [
        "alpha/2022-01-01  ^[32mverified^[39m: 26 checks passed",
        "alpha/2022-01-02  ^[33mnot proven^[39m: 25 checks passed",
      ]
    `);
  });

  test.each(["runs", "status", "verify"])("%s has none with NO_COLOR", async (command) => {
    const plain = await screen(100, [command]);
    expect(await screen(100, [command], { colours: true, env: { NO_COLOR: "1" } })).toBe(plain);
    expect(plain).not.toContain("^");
  });
});
