import { EventEmitter, once } from "node:events";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openArchiveSource } from "../../src/archive/read/archive-source.ts";
import { removeRun } from "../../src/archive/upkeep/remove.ts";
import type { RowAnswer } from "../../src/model/row-answer.ts";
import type { HistorySource } from "../../src/model/source.ts";
import { type Served, serve } from "../../src/serve/server.ts";
import { at, hours, repriced, run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { rawGet } from "../fixtures/served/serve-raw-client.ts";
import { type ArrayRow, ArraySource } from "../fixtures/source/array-source.ts";

const before = world({ fills: hours(60) }).get("fills")!;
const after = repriced(before);
const text = (rows: readonly ArrayRow[]) => rows.map(({ line }) => `${line}\n`).join("");

/** Holds every answer behind its first chunk until it is let go on, as a slow reader would. */
class Held extends EventEmitter {
  isHolding = true;
  begun = 0;

  over(source: HistorySource): HistorySource {
    const answered = async (answer: Promise<RowAnswer | null>) => {
      const given = (await answer)!;
      return { ...given, chunks: this.holding(given.chunks) };
    };
    return new Proxy(source, {
      get: (target, name) => {
        if (name === "answer")
          return (...asked: Parameters<NonNullable<HistorySource["answer"]>>) =>
            answered(target.answer!(...asked));
        const member = Reflect.get(target, name) as unknown;
        return typeof member === "function" ? member.bind(target) : member;
      },
    });
  }

  async *holding(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    let first = true;
    for await (const chunk of chunks) {
      yield chunk;
      if (!first) continue;
      first = false;
      this.begun += 1;
      this.emit("begun");
      if (this.isHolding) await once(this, "go");
    }
  }
}

let archived: TableWorld;
let origin: ArraySource;
let source: HistorySource;
let held: Held;
let server: Served;
let url: string;
beforeEach(async () => {
  archived = await TableWorld.create();
  origin = new ArraySource(run, new Map([["fills", before]]));
  await archived.archiveRun(origin);
  source = openArchiveSource(archived.archive, { readAheadBytes: 1 });
  held = new Held();
  server = await serve({
    source: held.over(source),
    host: "127.0.0.1",
    port: 0,
    compress: true,
    onError: () => {},
  });
  url = `${server.url}/history/fills?instance=${run.instanceId}&run_id=${run.runId}`;
});
afterEach(async () => {
  await server.close();
  await source[Symbol.asyncDispose]();
  await archived[Symbol.asyncDispose]();
});

/** Commits the run anew, with every segment replaced. */
async function commit(version: string, rows: readonly ArrayRow[], hour = 0) {
  origin.storageVersion = version;
  origin.tables = new Map([["fills", [...rows]]]);
  const clock = () => at(1_000_000 + hour);
  expect((await archived.archiveRun(origin, { clock })).changed).toBe(true);
}

test("a reader in mid-answer keeps its generation over a commit, which the next request sees", async () => {
  const reading = rawGet(url);
  await once(held, "begun");
  await commit("2", after);
  held.isHolding = false;
  expect((await rawGet(url)).body.toString()).toBe(text(after));
  const zstd = await fetch(url, { headers: { "accept-encoding": "zstd" } });
  expect([zstd.headers.get("content-encoding"), await zstd.text()]).toEqual(["zstd", text(after)]);
  held.emit("go");
  const old = await reading;
  expect([old.isWhole, old.body.toString()]).toEqual([true, text(before)]);
});

/** A reader in mid-answer, over two commits of which the second ends the hour of what the first replaced. */
async function readOverTheHour(meanwhile = async () => {}) {
  const reading = rawGet(url);
  await once(held, "begun");
  await meanwhile();
  await commit("2", after);
  await commit("3", before, 1);
  held.isHolding = false;
  held.emit("go");
  return await reading;
}

test("a reader in mid-answer keeps its generation even when its hour is over", async () => {
  const old = await readOverTheHour();
  expect([old.status, old.isWhole, old.body.toString()]).toEqual([200, true, text(before)]);
});

test("where nothing holds its files and a commit an hour later took them, its answer is cut, and asking again gives the newest", async () => {
  const { locksDir } = archived.archive.layout;
  const old = await readOverTheHour(async () => {
    for (const name of await readdir(locksDir))
      if (name.startsWith(".reading-")) await rm(join(locksDir, name));
  });
  expect([old.status, old.isWhole]).toEqual([200, false]);
  expect(text(before).startsWith(old.body.toString())).toBe(true);
  expect((await rawGet(url)).body.toString()).toBe(text(before));
});

test("a run that is removed and archived again is served as it now is, whatever its files are called", async () => {
  held.isHolding = false;
  expect((await rawGet(url)).body.toString()).toBe(text(before));
  const names = async () => (await readdir(archived.archive.layout.dataDir(run))).toSorted();
  const former = await names();
  await using forgetful = openArchiveSource(archived.archive, { readAheadBytes: 1, keptBytes: 0 });
  const reading = forgetful.rows({ ...run, table: "fills" })[Symbol.asyncIterator]();
  expect(text(before)).toContain(Buffer.from((await reading.next()).value!).toString());
  await removeRun(archived.archive, run);
  expect((await rawGet(url)).status).toBe(404);
  await commit("2", after);
  expect(await names()).toEqual(former);
  expect((await rawGet(url)).body.toString()).toBe(text(after));
  expect((await rawGet(`${url}&from=${after[3]!.ts}&limit=1`)).body.toString()).toBe(text(after.slice(3, 4)));
  // of the reader in mid-answer the rest is gone
  await expect(reading.next()).rejects.toMatchObject({ code: "history_query_failed" });
});
