// @module-tag slow
import { once } from "node:events";
import {
  appendFile,
  chmod,
  type FileHandle,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  truncate,
  writeFile,
} from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Layout } from "../../../src/archive/layout.ts";
import { lockHolder } from "../../../src/archive/lock.ts";
import type { RunvaultError } from "../../../src/model/error.ts";
import { lockJob } from "../../../src/pipeline/record/job-lock.ts";
import type { RecordLine, RunLine } from "../../../src/pipeline/record/job-record.ts";
import { openRecord } from "../../../src/pipeline/record/open-record.ts";
import { jobsWithRecords, readRecords } from "../../../src/pipeline/record/read-records.ts";
import { thinRecords } from "../../../src/pipeline/record/thin-records.ts";
import { beginLine, resultLine, writeRecord } from "../../fixtures/archive/job-records.ts";

let dir: string;
let layout: Layout;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "runvault-records-"));
  layout = new Layout(join(dir, "it's an archive"));
  await mkdir(layout.dir);
});
afterEach(() => rm(dir, { recursive: true, force: true }));

const runLine: RunLine = {
  kind: "run",
  at: "2022-01-01T00:00:01.000Z",
  instance: "alpha-1",
  run: "2022-01-01-001",
  plan: "new",
  result: "archived",
  tables: {
    fills: { state: "COMPLETE", before: null, proof: "counted", rows: 3, accepted: false, error: null },
  },
  rows: 3,
  bytes: 300,
  retries: 0,
  seconds: 1.5,
  steps: { fetch: 1 },
  error: null,
  exit: 0,
};

async function read(job?: string) {
  const damage: RunvaultError[] = [];
  const records = [];
  const onDamage = (error: RunvaultError) => void damage.push(error);
  for await (const record of readRecords(layout, { ...(job === undefined ? {} : { job }), onDamage }))
    records.push(record);
  return { records, damage };
}

async function linesOf(lines: AsyncGenerator<RecordLine>): Promise<RecordLine[]> {
  const all: RecordLine[] = [];
  for await (const line of lines) all.push(line);
  return all;
}

describe("a record", () => {
  test("holds its lines as they were added, one JSON document each, with the permissions of the archive", async () => {
    await chmod(layout.dir, 0o750);
    const begin = beginLine(1);
    const result = resultLine();
    await using record = await openRecord(layout, begin);
    await Promise.all([record.add(runLine), record.add({ ...runLine, run: "2" }), record.add(result)]);
    const text = await readFile(record.file, "utf8");
    expect(
      text
        .split("\n")
        .slice(0, -1)
        .map((line) => JSON.parse(line)),
    ).toEqual([begin, runLine, { ...runLine, run: "2" }, result]);
    expect(layout.keyOf(record.file)).toBe("jobs/nightly/20220101T000000.000Z-00000001.ndjson");
    expect((await stat(record.file)).mode & 0o777).toBe(0o640);
    expect((await stat(dirname(record.file))).mode & 0o777).toBe(0o750);
  });

  test("takes no line that its contract does not have, and none behind its result", async () => {
    await using record = await openRecord(layout, beginLine(1));
    const wrong = { ...runLine, rows: -1 };
    await expect(record.add(wrong)).rejects.toMatchObject({
      code: "internal",
      message: expect.stringContaining("rows"),
    });
    await record.add(resultLine());
    await expect(record.add(runLine)).rejects.toMatchObject({ code: "internal" });
    expect((await read()).records).toMatchObject([{ state: "ended", result: { exit: 0 } }]);
  });

  test("is not begun through a link, nor over another", async () => {
    await mkdir(layout.jobsDir);
    await symlink(dir, layout.recordsDir("nightly"));
    await expect(openRecord(layout, beginLine(1))).rejects.toMatchObject({ code: "archive_damaged" });
    await rm(layout.recordsDir("nightly"));
    await writeRecord(layout, beginLine(1), resultLine());
    await expect(openRecord(layout, beginLine(1))).rejects.toMatchObject({ code: "storage_failed" });
  });

  test("on a full disk is an error of storage, and what was before stays whole", async () => {
    await using record = await openRecord(layout, beginLine(1));
    const { size } = await stat(record.file);
    await using other = await open(record.file);
    const handles = Object.getPrototypeOf(other) as FileHandle;
    const full = vi.spyOn(handles, "writeFile").mockImplementation(async function (this: FileHandle, bytes) {
      await this.write((bytes as Buffer).subarray(0, 10));
      throw Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
    });
    const refusal = { code: "storage_full", exit: 7, place: { file: record.file } };
    await expect(record.add(runLine)).rejects.toMatchObject(refusal);
    full.mockRestore();
    expect((await stat(record.file)).size).toBe(size);
    await record.add(resultLine());
    expect((await read()).records).toMatchObject([{ state: "ended" }]);
  });
});

describe("records are read", () => {
  test("newest first, of one job or of all", async () => {
    await writeRecord(layout, beginLine(1), resultLine());
    await writeRecord(layout, beginLine(3), runLine, resultLine({ exit: 4 }));
    await writeRecord(layout, beginLine(2, { job: "weekly" }), resultLine());
    expect(await jobsWithRecords(layout)).toEqual(["nightly", "weekly"]);
    expect((await read()).records.map(({ job, id, result }) => [job, id, result?.exit])).toEqual([
      ["nightly", "00000003", 4],
      ["weekly", "00000002", 0],
      ["nightly", "00000001", 0],
    ]);
    const { records } = await read("nightly");
    expect(records.map(({ id }) => id)).toEqual(["00000003", "00000001"]);
    expect(records[0]!.file).toBe("jobs/nightly/20220103T000000.000Z-00000003.ndjson");
    expect((await linesOf(records[0]!.lines())).map(({ kind }) => kind)).toEqual(["begin", "run", "result"]);
    expect(await read("none")).toEqual({ records: [], damage: [] });
  });

  test("from their ends, whatever is between", async () => {
    const runs = Array.from({ length: 3_000 }, (_, index) => ({ ...runLine, run: `2022-${index}` }));
    const file = await writeRecord(layout, beginLine(1), ...runs, resultLine({ rows: 9_000 }));
    const text = await readFile(file, "utf8");
    await writeFile(file, text.replace(/"run":"2022-1500"/, '"run":"2022-1500'));
    const { records, damage } = await read();
    expect(records).toMatchObject([{ state: "ended", result: { rows: 9_000 } }]);
    expect(damage).toEqual([]);
    const told: RunvaultError[] = [];
    expect(await linesOf(records[0]!.lines((error) => void told.push(error)))).toHaveLength(3_001);
    expect(told).toMatchObject([{ code: "archive_damaged", place: { file, line: 1502 } }]);
  });

  test("cut at any byte: without its whole last line it is of an execution that died, and whole lines are there", async () => {
    const file = await writeRecord(layout, beginLine(1), runLine, resultLine());
    const bytes = await readFile(file);
    const ends = [...bytes.entries()].flatMap(([at, byte]) => (byte === 10 ? [at + 1] : []));
    for (let size = bytes.byteLength; size >= 0; size--) {
      await truncate(file, size);
      const { records, damage } = await read();
      const whole = ends.filter((end) => end <= size).length;
      if (whole === 0) {
        expect(records).toEqual([]);
        expect(damage).toMatchObject([{ code: "archive_damaged", place: { file } }]);
      } else {
        expect(records).toMatchObject([{ state: whole === 3 ? "ended" : "died" }]);
        expect(await linesOf(records[0]!.lines())).toHaveLength(whole);
      }
    }
  });

  test("beside what is none: each is told with its file, and hides no other", async () => {
    await writeRecord(layout, beginLine(9), resultLine());
    const folder = layout.recordsDir("nightly");
    const named = (day: number) =>
      join(folder, `202201${String(day).padStart(2, "0")}T000000.000Z-0000000${day}.ndjson`);
    const text = async (day: number, content: string) => {
      await writeFile(named(day), content);
      return named(day);
    };
    const line = (day: number, over: object = {}) => `${JSON.stringify({ ...beginLine(day), ...over })}\n`;
    const bad: [string, RegExp][] = [
      [await text(1, "not JSON\n"), /line 1 is not JSON/],
      [await text(2, ""), /no whole line/],
      [await text(3, line(3, { version: 2 })), /has version 2, but this runvault reads version 1/],
      [await text(4, line(4, { job: "weekly" })), /another execution/],
      [await text(5, `${line(5)}{"kind":"result","exit":"none"}\n`), /its last line is not valid/],
      [await text(6, "x".repeat(2_000_000)), /first line does not end/],
      [await text(7, `${line(7)}${"[".repeat(100_000)}\n`), /not JSON/],
      [join(folder, "notes.txt"), /not the name of a record/],
      [join(layout.jobsDir, "Weekly"), /not the name of a job/],
      [join(layout.jobsDir, "linked"), /a symbolic link, not a folder/],
      [named(8), /a symbolic link, not a file/],
      [join(folder, "20220131T000000.000Z-0000000z.ndjson"), /a special file, not a file/],
    ];
    await writeFile(join(folder, "notes.txt"), "mine");
    await mkdir(join(layout.jobsDir, "Weekly"));
    await symlink(dir, join(layout.jobsDir, "linked"));
    await writeFile(join(dir, "elsewhere"), `${line(8)}${JSON.stringify(resultLine())}\n`);
    await symlink(join(dir, "elsewhere"), named(8));
    const socket = createServer().listen(join(dir, "socket"));
    await once(socket, "listening");
    await rename(join(dir, "socket"), bad.at(-1)![0]);
    const { records, damage } = await read();
    socket.close();
    expect(records.map(({ id }) => id)).toEqual(["00000009"]);
    const told = damage.map(({ place, message }) => [place.file, message]);
    expect(told.map(([file]) => file).sort()).toEqual(bad.map(([file]) => file).sort());
    for (const [file, message] of bad) expect(told.find((one) => one[0] === file)![1]).toMatch(message);
  });

  test("in a folder that is a link, which is told", async () => {
    await symlink(dir, layout.jobsDir);
    expect(await read()).toMatchObject({ records: [], damage: [{ code: "archive_damaged" }] });
    expect(await read("nightly")).toMatchObject({ records: [], damage: [{ code: "archive_damaged" }] });
  });
});

describe("an execution", () => {
  test("is running while it has the job's lock, and died when nobody has", async () => {
    await writeRecord(layout, beginLine(1), resultLine());
    await writeRecord(layout, beginLine(2));
    {
      await using _lock = await lockJob(layout, "nightly");
      await using _record = await openRecord(layout, beginLine(3));
      const { records } = await read();
      expect(records.map(({ state }) => state)).toEqual(["running", "died", "ended"]);
    }
    expect((await read()).records.map(({ state }) => state)).toEqual(["died", "died", "ended"]);
  });

  test("that died is not taken for the next, which has the lock and no record yet", async () => {
    await writeRecord(layout, beginLine(1));
    await using _lock = await lockJob(layout, "nightly");
    expect((await read()).records.map(({ state }) => state)).toEqual(["died"]);
  });

  test("ends a second of the same job at once, which names the first; other jobs go on", async () => {
    await using _lock = await lockJob(layout, "nightly");
    await using _record = await openRecord(layout, beginLine(3));
    await expect(lockJob(layout, "nightly")).rejects.toMatchObject({
      code: "locked",
      exit: 6,
      message: expect.stringMatching(
        new RegExp(`execution of nightly \\(pid ${process.pid} on .+\\) has been running since 2022-01-03`),
      ),
    });
    await using _other = await lockJob(layout, "weekly");
  });

  test("is kept from starting by nobody who looks", async () => {
    const looks = async () => {
      for (let look = 0; look < 40; look++) await lockHolder(layout, layout.jobLockFile("nightly"));
    };
    const starts = async () => {
      for (let start = 0; start < 40; start++)
        await (await lockJob(layout, "nightly"))[Symbol.asyncDispose]();
    };
    await Promise.all([looks(), starts(), looks()]);
    expect(await lockHolder(layout, layout.jobLockFile("nightly"))).toBeNull();
  });

  test("keeps its lock although its own process looks at it", async () => {
    await using _lock = await lockJob(layout, "nightly");
    expect(await lockHolder(layout, layout.jobLockFile("nightly"))).toEqual({ pid: process.pid });
    expect(await lockHolder(layout, layout.jobLockFile("weekly"))).toBeNull();
    expect(await readdir(layout.locksDir)).toEqual([".job-nightly.duckdb"]);
  });
});

describe("records are thinned", () => {
  const dayMs = 86_400_000;
  const now = new Date("2022-01-31T00:00:00Z");
  const names = async () => (await readdir(layout.recordsDir("nightly"))).map((name) => name.slice(0, 8));

  test("by their age, but for the last that succeeded and the last that ended", async () => {
    for (const day of [1, 2, 5]) await writeRecord(layout, beginLine(day), resultLine());
    for (const day of [6, 7]) await writeRecord(layout, beginLine(day), resultLine({ exit: 4 }));
    for (const day of [8, 9]) await writeRecord(layout, beginLine(day));
    expect(await thinRecords(layout, "nightly", { keepMs: 10 * dayMs, now })).toBe(4);
    expect(await names()).toEqual(["20220105", "20220107", "20220109"]);
    expect(await thinRecords(layout, "nightly", { keepMs: 10 * dayMs, now })).toBe(0);
  });

  test("and young ones stay, damaged ones go, and what is not ours is left alone", async () => {
    await writeRecord(layout, beginLine(1), resultLine());
    await writeRecord(layout, beginLine(25), resultLine());
    const file = await writeRecord(layout, beginLine(2), resultLine());
    await appendFile(file, "damage\n");
    await writeFile(join(dirname(file), "notes.txt"), "mine");
    await symlink(file, join(dirname(file), `20220103${basename(file).slice(8)}`));
    await writeRecord(layout, beginLine(26), resultLine({ exit: 3 }));
    expect(await thinRecords(layout, "nightly", { keepMs: 10 * dayMs, now })).toBe(2);
    expect(await names()).toEqual(["20220103", "20220125", "20220126", "notes.tx"]);
    expect(await thinRecords(layout, "none", { keepMs: 10 * dayMs, now })).toBe(0);
  });
});
