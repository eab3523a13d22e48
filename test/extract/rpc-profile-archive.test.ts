// @module-tag slow
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openArchive } from "../../src/archive/archive.ts";
import { rowHash } from "../../src/row/row-hash.ts";
import { parquetLines } from "../fixtures/archive/archived-lines.ts";
import { type CorvidFaults, corvidProfile } from "../fixtures/foreign/corvid/corvid.ts";
import { CorvidBench, outcomeOf, withoutExtra } from "../fixtures/foreign/foreign-bench.ts";
import { judged } from "../fixtures/foreign/foreign-truth.ts";
import { someOf } from "../fixtures/trials/cases.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-corvid-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

let profiles = 0;

test.each([
  ["a profile that speaks Connect", (text: string) => text],
  ["a profile whose factors come by a route", factorsByRoute],
])("%s brings the same rows", async (_name, change) => {
  await using bench = await CorvidBench.overHttp();
  const text = (await readFile(corvidProfile, "utf8")).replace("protocol: grpc", "protocol: connect");
  const file = join(folder, `${++profiles}.yaml`);
  await writeFile(file, change(text).replace("corvid.binpb", join(dirname(corvidProfile), "corvid.binpb")));
  const { status, stderr } = await bench.archive(file, "--retries", "5");
  // what is complete is what is true
  expect([await outcomeOf(bench, status), stderr]).toEqual(["COMPLETE", expect.any(String)]);
});

/** The profile with a path for factors, in whose rows nothing says whose they are. */
function factorsByRoute(text: string): string {
  const begin = text.indexOf("    factors:\n");
  return `${text.slice(0, begin)}${text.slice(text.indexOf("  errors:"))}`
    .replace(
      "      run_id: session\n      instance_id: desk\n",
      "      run_id: run\n      instance_id: instance\n",
    )
    .replace(
      "  factors:\n",
      "  factors:\n    path: /signals\n    parameters: { instance: desk, run: session, from: since, to: until, limit: most }\n",
    );
}

/** What became of fills and of factors, by another profile than corvid's own where one is given. */
async function outcome(faults: CorvidFaults, profile?: string, ...more: string[]) {
  await using bench = await CorvidBench.open(faults);
  const { status, stderr } = await bench.archive(profile, ...more);
  return { found: await outcomeOf(bench, status), status, stderr };
}

test("by its profile alone a gateway that speaks gRPC is archived with the row hashes of what it holds", async () => {
  await using bench = await CorvidBench.open();
  const { status, stderr } = await bench.archive();
  expect([await outcomeOf(bench, status), stderr]).toEqual(["COMPLETE", expect.any(String)]);
  const archive = await openArchive(bench.dir);
  for (const name of bench.tables) {
    const lines = (await parquetLines(archive, judged, name)).map((line) => withoutExtra(line, name));
    expect(lines).toEqual(bench.truth(name));
    expect(await rowHash(lines)).toEqual(await rowHash(bench.truth(name)));
  }
});

/** Faults that end in an archive of what is true: the gateway recovers, or only its manners are odd. */
const harmless: Readonly<Record<string, CorvidFaults>> = {
  "one answer without trailers": { ends: "without trailers", times: "once" },
  "one answer without a grpc-status": { ends: "without status", times: "once" },
  "one answer whose stream is reset in a message": { ends: "cut", times: "once" },
  "one connection that dies in a message": { ends: "died", times: "once" },
  "half a message and a grpc-status of 0, once": { ends: "short", times: "once" },
  "a connection that goes away": { once: "goaway" },
  "a stream that is refused": { once: "reset" },
  "a connection that dies": { once: "died" },
  "a server that is unavailable once": { once: "unavailable" },
  "pages shorter than asked for": { pageRows: 4 },
};

test.each(someOf(Object.entries(harmless), 3))("%s costs nothing but time", async (_name, faults) => {
  const { found, stderr } = await outcome(faults, undefined, "--retries", "3");
  expect([found, stderr]).toEqual(["COMPLETE", expect.any(String)]);
});

/** Faults that last, beside those of the table of outcomes, and how the tables end. */
const lasting: Readonly<Record<string, readonly [CorvidFaults, string]>> = {
  "answers without a grpc-status": [{ ends: "without status" }, "stream_cut"],
  "a length that is too long": [{ ends: "long length" }, "stream_cut"],
  "a length that is too short": [{ ends: "short length" }, "stream_cut"],
  "tokens in a circle": [{ tokens: "circle" }, "stream_cut"],
  "tokens in a spiral": [{ tokens: "spiral" }, "stream_cut"],
};

test.each(someOf(Object.entries(lasting), 2))("%s: no table is complete", async (_name, [faults, code]) => {
  const { found, status } = await outcome(faults);
  const cut = `(INCOMPLETE|UNVERIFIED) \`${code}\``;
  expect(found).toMatch(new RegExp(`^${cut}(, ${cut})?$`));
  expect(status).not.toBe(0);
});

test("messages in a compression that nobody asked for are refused by its name", async () => {
  const { found, status, stderr } = await outcome({ encoding: "deflate" });
  expect([found, status]).toEqual(["nothing", 9]);
  expect(stderr).toMatch(/compressed a message with deflate instead of gzip/);
});

test("answers that end inside a timestamp are completed by the filter, and with it ignored by nothing", async () => {
  const text = await readFile(corvidProfile, "utf8");
  const begin = text.indexOf("    storage:\n");
  const file = join(folder, `${++profiles}.yaml`);
  const uncounted = `${text.slice(0, begin)}${text.slice(text.indexOf("    summary:\n"))}`;
  await writeFile(file, uncounted.replace("corvid.binpb", join(dirname(corvidProfile), "corvid.binpb")));
  const capped = "INCOMPLETE `timestamp_capped`";
  // factors have no filter here, and without counts nothing shows that a filter brings all
  expect((await outcome({ cap: 4 })).found).toBe(`COMPLETE, ${capped}`);
  expect((await outcome({ cap: 4, ignores: "filter" })).found).toBe(capped);
  expect((await outcome({ cap: 4 }, file)).found).toBe(capped);
  expect((await outcome({ cap: 4, ignores: "filter" }, file)).found).toBe(capped);
});
