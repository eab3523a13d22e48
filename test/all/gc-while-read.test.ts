import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { link, readdir, writeFile } from "node:fs/promises";
import { get, type IncomingMessage } from "node:http";
import { dirname, join, relative } from "node:path";
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { type Archive, openArchive } from "../../src/archive/archive.ts";
import { everyFile } from "../../src/archive/manifest/manifest-files.ts";
import type { Collected } from "../../src/archive/upkeep/collect-garbage.ts";
import { linkedParquet } from "../../src/archive/write/commit.ts";
import { tableNames } from "../../src/model/profile/table.ts";
import { wallClock } from "../../src/model/time.ts";
import { at, hours, repriced, run, TableWorld } from "../fixtures/archive/table-world.ts";
import { start } from "../fixtures/command/command-process.ts";
import { filesBelow, KillDriver, KillWorld } from "../fixtures/command/kill-driver.ts";
import { builtMain } from "../fixtures/command/project.ts";
import { ArraySource, rowsAt } from "../fixtures/source/array-source.ts";

/** `runvault gc` in a process of its own. */
async function collect(archive: Archive, more: readonly string[] = ["--grace", "0s"], env = {}) {
  const running = start(["gc", "--json", "--archive", archive.dir, ...more], env);
  const { status, stdout, stderr } = await running.finished;
  expect({ status, stderr, signal: running.child.signalCode }).toEqual({
    status: 0,
    stderr: "",
    signal: null,
  });
  return JSON.parse(stdout) as Collected;
}

/** Every file that the archive has reason to have, as paths below it. */
async function wantedFiles({ dir, layout, manifests }: Archive): Promise<Set<string>> {
  const wanted = new Set([layout.archiveFile, layout.sourcesFile]);
  for (const manifest of await manifests()) {
    for (const path of [layout.manifestFile, layout.lockFile, layout.cacheFile])
      wanted.add(path.call(layout, manifest));
    for (const { folder, file } of everyFile(manifest))
      wanted.add(join(dir, layout.committedKey(manifest, folder, file)));
    for (const name of tableNames)
      for (const { bucket } of linkedParquet(manifest, name))
        wanted.add(join(layout.tableDir(name, manifest), `${bucket}.parquet`));
  }
  return new Set([...wanted].map((path) => relative(dir, path)));
}

async function expectNothingElse(archive: Archive): Promise<void> {
  const wanted = await wantedFiles(archive);
  const there = (await filesBelow(archive.dir)).map((path) => relative(archive.dir, path));
  expect(there.filter((path) => !wanted.has(path))).toEqual([]);
}

async function expectAllThere(archive: Archive): Promise<void> {
  const there = new Set((await filesBelow(archive.dir)).map((path) => relative(archive.dir, path)));
  for (const manifest of await archive.manifests())
    for (const { folder, file } of everyFile(manifest))
      expect(there.has(archive.layout.committedKey(manifest, folder, file)), file).toBe(true);
}

/** A reader that has begun, and reads on when it is told to. */
interface Paused {
  readonly what: string;
  readonly child?: ChildProcess;
  /** What it gave in all. */
  finish(): Promise<string>;
}

async function textOf(stream: Readable): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of stream) parts.push(part as Buffer);
  return Buffer.concat(parts).toString();
}

/** A command whose standard output nobody reads for now. */
async function pausedCommand(...args: string[]): Promise<Paused> {
  const child = spawn(process.execPath, [builtMain, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  const ended = once(child, "close");
  const told = textOf(child.stderr);
  await once(child.stdout, "readable");
  return {
    what: args[0]!,
    child,
    finish: async () => {
      const text = await textOf(child.stdout);
      await ended;
      expect(child.exitCode, await told).toBe(0);
      return text;
    },
  };
}

async function pausedAnswer(url: string): Promise<Paused> {
  const answer = await new Promise<IncomingMessage>((answered, failed) => {
    get(url, { agent: false }, answered).on("error", failed);
  });
  expect(answer.statusCode).toBe(200);
  answer.pause();
  return { what: "serve", finish: () => textOf(answer) };
}

const hashOf = (text: string) => createHash("sha256").update(text).digest("hex");

describe("gc", () => {
  // more text than lies between a process and one that does not read
  const count = 60_000;

  it("takes nothing from eight readers while two generations are committed, and all that nobody reads after", async () => {
    await using world = await TableWorld.create();
    const { archive } = world;
    const rows = rowsAt(
      run,
      "fills",
      hours(count).map((n) => at(n / 100)),
    );
    const source = new ArraySource(run, new Map([["fills", rows]]));
    const settings = { segmentBytes: 1_000_000, sliceRows: 10_000 };
    const commit = async () => {
      await world.archiveRun(source, { clock: wallClock, settings });
    };
    await commit();
    const first = await filesBelow(archive.layout.dataDir(run));
    const server = start(["serve", "--archive", archive.dir, "--port", "0"]);
    const address = await server.firstLine();
    const { instanceId, runId } = run;
    const history = `${address}/history/fills?instance=${instanceId}&run_id=${runId}`;
    const place = ["--archive", archive.dir];
    const ordered = "SELECT * FROM fills ORDER BY ts_event, seq";
    const readers = [
      ...(await Promise.all([1, 2, 3, 4].map(() => pausedAnswer(history)))),
      await pausedCommand("query", ordered, "--format", "ndjson", ...place),
      await pausedCommand("query", "SELECT * FROM fills", "--format", "ndjson", ...place),
      await pausedCommand("export", "fills", "--format", "ndjson", "--out", "-", ...place),
      await pausedCommand("export", "fills", "--format", "csv", "--out", "-", ...place),
    ];
    const killed = await pausedCommand("query", ordered, "--format", "ndjson", ...place);
    for (const version of ["2", "3"]) {
      const gc = collect(archive);
      source.storageVersion = version;
      source.tables = new Map([["fills", version === "2" ? repriced(rows) : rows]]);
      await commit();
      await gc;
      await expectAllThere(archive);
    }
    expect((await archive.manifest(run))!.generation).toBe(3);
    const { removed, kept } = await collect(archive);
    expect(removed.replaced.files + removed.unnamed.files).toBe(0);
    expect(kept.reading.files).toBeGreaterThan(first.length);
    killed.child!.kill("SIGKILL");
    const killedMs = Date.now();
    const texts = await Promise.all(readers.map((reader) => reader.finish()));
    const lines = rows.map(({ line }) => `${line}\n`).join("");
    for (const text of texts.slice(0, 4)) expect(hashOf(text)).toBe(hashOf(lines));
    for (const [index, text] of texts.slice(4).entries())
      expect(text.trimEnd().split("\n").length, readers[index + 4]!.what).toBe(count + (index === 3 ? 1 : 0));
    // what a killed reader leaves is certain once a reader that only begins would have its lock
    await sleep(Math.max(0, killedMs + 11_000 - Date.now()));
    const told = await collect(archive, ["--grace", "0s", "--dry-run"]);
    const done = await collect(archive);
    expect(done.removed).toEqual(told.removed);
    expect(done.removed.replaced.files).toBeGreaterThan(first.length);
    expect(done.removed.replaced.bytes).toBeGreaterThan(1_000_000);
    await expectAllThere(archive);
    // the server goes on, with the newest
    const now = await (await pausedAnswer(history)).finish();
    expect(hashOf(now)).toBe(hashOf(lines));
    server.child.kill("SIGTERM");
    await server.finished;
    await collect(archive);
    await expectNothingElse(archive);
  });

  it("works beside a job, and kills at any file leave what the next one collects", async () => {
    await using world = await KillWorld.create({ rows: 1000 });
    const gateway = await world.serve();
    const undisturbed = new KillDriver(world, gateway, await world.archiveFolder());
    await undisturbed.goOn();
    const driver = new KillDriver(world, gateway, await world.archiveFolder());
    gateway.holdAfter(6);
    const running = driver.start();
    while ((await driver.journalled()).length < 3 && running.child.exitCode === null) await sleep(20);
    const archive = await openArchive(driver.dir);
    const beside = await collect(archive);
    expect(Object.values(beside.removed).every(({ files }) => files === 0)).toBe(true);
    expect(beside.kept.unfinished.files).toBeGreaterThan(3);
    gateway.letGo();
    let isOver = false;
    const finished = running.finished.finally(() => {
      isOver = true;
    });
    while (!isOver) await collect(archive);
    expect((await finished).status).toBe(0);
    await driver.expectEqualTo(await openArchive(undisturbed.dir));

    const data = archive.layout.dataDir(world.run);
    const [one] = await readdir(data);
    for (let n = 1; n <= 6; n++) await link(join(data, one!), join(data, `fills.g9.00000${n}.parquet`));
    const aside = join(dirname(data), world.run.runId, ".fills.g9.000009.parquet.77-1.part");
    await writeFile(aside, "half");
    for (let killedAt = 1; ; killedAt = (killedAt % 3) + 1) {
      const env = { RUNVAULT_KILL_AT: `garbage-removed:${killedAt}` };
      const gc = start(["gc", "--grace", "0s", "--archive", archive.dir], env);
      expect((await gc.finished).stderr).toBe("");
      await expectAllThere(archive);
      if (gc.child.signalCode === null) break;
    }
    await collect(archive);
    await expectNothingElse(archive);
    await driver.expectEqualTo(await openArchive(undisturbed.dir));
  });
});
