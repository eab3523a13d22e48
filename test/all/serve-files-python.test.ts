import { readFileSync } from "node:fs";
import { access, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Archive, openArchive } from "../../src/archive/archive.ts";
import { archiveRun } from "../../src/extract/run/archive-run.ts";
import type { RunRef } from "../../src/model/source.ts";
import { type Nanoseconds, wallClock } from "../../src/model/time.ts";
import type { Row } from "../../src/row/line.ts";
import { openSimulator, type Simulator } from "../../src/simulator/simulator.ts";
import { type Running, start } from "../fixtures/command/command-process.ts";
import { inProject } from "../fixtures/command/project.ts";
import { PythonSession } from "../fixtures/command/python-session.ts";
import { httpfsSetup, requires } from "../fixtures/command/requirement.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";

/** What `files-client.py` says of a reading. */
interface Seen {
  readonly reader: string;
  readonly files: number;
  readonly rows: number;
  readonly seqs: string;
}

interface Fill {
  readonly ts: bigint;
  readonly seq: bigint;
}

const client = readFileSync(inProject("test/fixtures/command/files-client.py"), "utf8");
const [hasClient, hasHttpfs] = [requires("http-client"), requires("httpfs")];
const readers = [...(hasClient ? ["polars", "pandas"] : []), ...(hasHttpfs ? ["duckdb"] : [])];

/** Two row groups and a half in one file. */
const fillsOfRun = 150_000;

let folder: string;
let simulator: Simulator;
/** Of fewer fills: they are archived again and again. */
let growingSimulator: Simulator;
let archive: Archive;
let server: Running;
let url: string;
let accessLog: string;
let finished: RunRef;
let growing: RunRef;
let now: Nanoseconds;
let rowsOfFinished: readonly Fill[];
const pythons: PythonSession[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-files-python-"));
  const world = { seed: "files", instances: 1, failed: 0, cacheDir: join(folder, "worlds") };
  simulator = await openSimulator({ ...world, runs: 1, fills: fillsOfRun });
  const grows = { runs: 2, growing: true, fills: 20_000, clock: () => now };
  growingSimulator = await openSimulator({ ...world, ...grows });
  finished = await latestRun(simulator);
  growing = await latestRun(growingSimulator);
  archive = await openArchive(join(folder, "archive"), { create: true });
  await archiveFills(finished);
  archiveAt(50n);
  await archiveFills(growing);
  rowsOfFinished = await fillsOf(finished);
  accessLog = join(folder, "access.ndjson");
  server = start(["serve", "--archive", archive.dir, "--access-log", accessLog]);
  url = await server.firstLine();
});
afterAll(async () => {
  await Promise.all(pythons.map((python) => python[Symbol.asyncDispose]()));
  if (server.child.exitCode === null) server.child.kill("SIGKILL");
  await server.finished;
  await simulator[Symbol.asyncDispose]();
  await growingSimulator[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

async function latestRun(of: Simulator): Promise<RunRef> {
  const { instanceId, runIds } = (await of.instances())[0]!;
  return { instanceId, runId: runIds.at(-1)! };
}

const sourceOf = (run: RunRef) => (run === growing ? growingSimulator : simulator);

/** Lets the growing run be so many percent long. */
function archiveAt(percent: bigint): void {
  const { started, ended } = growingSimulator.span(growing);
  now = started + ((ended - started) * percent) / 100n;
}

async function archiveFills(run: RunRef): Promise<void> {
  const { manifest } = await archiveRun({
    source: sourceOf(run),
    archive,
    run,
    tables: ["fills"],
    clock: wallClock,
    retry: quickRetry(),
    signal: new AbortController().signal,
    tool: "test",
  });
  expect(manifest.tables.fills!.proven).not.toBeNull();
}

/** Rows and sum of seq of what was just archived of the growing run: late rows still come into it. */
async function state(): Promise<string> {
  const { last, rows } = (await archive.manifest(growing))!.tables.fills!.proven!.certificate!;
  const proven = (await fillsOf(growing)).filter(({ ts }) => ts <= BigInt(last!.ts));
  expect(proven.length).toBe(rows);
  return `${rows} ${seqsOf(proven)}`;
}

async function fillsOf(run: RunRef): Promise<Fill[]> {
  const parts: Buffer[] = [];
  for await (const part of sourceOf(run).rows({ ...run, table: "fills" })) parts.push(Buffer.from(part));
  const lines = Buffer.concat(parts).toString().trimEnd().split("\n");
  return lines.map((line) => {
    const row = JSON.parse(line) as Row;
    return { ts: BigInt(row.ts_event as string), seq: BigInt(row.seq as string) };
  });
}

function seqsOf(rows: readonly Fill[]): string {
  return String(rows.reduce((sum, { seq }) => sum + seq, 0n));
}

/**
 * A reader's interpreter, for one reading after another: DuckDB with its extension is another version than the notebook's,
 * and so another interpreter's.
 */
async function newPython(reader: string): Promise<PythonSession> {
  const session = new PythonSession();
  pythons.push(session);
  if (reader === "duckdb") await session.run(httpfsSetup);
  return session;
}

/** Of each reader, the interpreter that reads when nothing else does. */
const usual = new Map<string, PythonSession>();
async function usualPython(reader: string): Promise<PythonSession> {
  const session = usual.get(reader) ?? (await newPython(reader));
  usual.set(reader, session);
  return session;
}

async function reads(
  session: PythonSession,
  reader: string,
  mode: string,
  argument: string,
  run: RunRef,
): Promise<Seen[]> {
  const listing = `${url}/files/fills?instance=${run.instanceId}&run_id=${run.runId}`;
  const printed = await session.run(client, [listing, reader, mode, argument]);
  return printed
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Seen);
}

async function bytesGiven(): Promise<number> {
  const lines = (await readFile(accessLog, "utf8")).split("\n").slice(0, -1);
  const entries = lines.map((line) => JSON.parse(line) as { path: string; bytes: number });
  const given = entries.filter(({ path }) => path.endsWith(".parquet"));
  return given.reduce((sum, { bytes }) => sum + bytes, 0);
}

describe.each(readers)("%s", (reader) => {
  test("fetches no more than the row groups and columns that a question is about", async () => {
    const rows = rowsOfFinished;
    const before = rows[rows.length / 50]!.ts;
    const early = rows.filter(({ ts }) => ts < before);
    const { parquet } = (await archive.manifest(finished))!.tables.fills!.proven!;
    const whole = parquet.reduce((sum, { storedBytes }) => sum + storedBytes, 0);
    // all columns of one of three row groups, two columns of all of them; and what a reader takes for good measure
    for (const [mode, wanted, share] of [
      ["first", early, 0.7],
      ["columns", rows, 0.5],
    ] as const) {
      const given = await bytesGiven();
      expect(await reads(await usualPython(reader), reader, mode, String(before), finished)).toEqual([
        { reader, files: parquet.length, rows: wanted.length, seqs: seqsOf(wanted) },
      ]);
      const fetched = (await bytesGiven()) - given;
      expect(fetched).toBeGreaterThan(0);
      expect(fetched / whole, mode).toBeLessThan(share);
    }
  });
});

describe.skipIf(readers.length === 0)("while a run goes on and is archived again and again", () => {
  test("each reading is one committed state, whole, also by a list from before", async () => {
    const states = [await state()];
    const over = join(folder, "over");
    const late = readers.map((reader) => [reader, join(folder, `late-${reader}`)] as const);
    const lateReadings = late.map(async ([reader, file]) =>
      reads(await usualPython(reader), reader, "late", file, growing),
    );
    for (const [, file] of late) await appears(`${file}.listed`);
    const readings = readers.map(async (reader) =>
      reads(await newPython(reader), reader, "until", over, growing),
    );
    for (const percent of [65n, 90n]) {
      archiveAt(percent);
      await archiveFills(growing);
      states.push(await state());
    }
    await writeFile(over, "");
    for (const [, file] of late) await writeFile(file, "");
    const seen = (await Promise.all(readings)).flat();
    for (const { reader, rows, seqs } of seen) expect(states, reader).toContain(`${rows} ${seqs}`);
    for (const reader of readers) {
      const own = seen.filter((one) => one.reader === reader).map(({ rows, seqs }) => `${rows} ${seqs}`);
      expect(own.at(-1)).toBe(states.at(-1));
    }
    for (const { rows, seqs } of (await Promise.all(lateReadings)).flat())
      expect(`${rows} ${seqs}`).toBe(states[0]);
    expect(new Set(states).size).toBe(3);
    expect((await archive.manifest(growing))!.generation).toBe(3);
  });
});

async function appears(file: string): Promise<void> {
  await expect
    .poll(
      () =>
        access(file).then(
          () => true,
          () => false,
        ),
      { timeout: 30_000 },
    )
    .toBe(true);
}
