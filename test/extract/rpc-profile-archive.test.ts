import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openArchive } from "../../src/archive/archive.ts";
import type { TableName } from "../../src/model/profile/table.ts";
import { rowHash } from "../../src/row/row-hash.ts";
import { parquetLines, segmentLines } from "../fixtures/archive/archived-lines.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { Corvid, type CorvidFaults, corvidProfile, corvidShape } from "../fixtures/foreign/corvid/corvid.ts";
import { CorvidHttp } from "../fixtures/foreign/corvid/corvid-http.ts";
import { withoutExtra } from "../fixtures/foreign/foreign-bench.ts";
import { judged, type TrueRow, trueLines } from "../fixtures/foreign/foreign-truth.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-corvid-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** What the table holds: trades have no numbers of their own here. */
function truth(corvid: Corvid, table: TableName): string[] {
  const run = corvid.runs.find((one) => one.instance === judged.instanceId && one.run === judged.runId)!;
  const rows = run.tables.get(table)!;
  const unnumbered = rows.map((row): TrueRow => ({ ...row, seq: undefined }));
  return trueLines(table, run, table === "fills" ? unnumbered : rows);
}

let archives = 0;

test.each([
  ["a profile that speaks Connect", (text: string) => text],
  ["a profile whose factors come by a route", factorsByRoute],
])("%s brings the same rows", async (_name, change) => {
  await using gateway = await CorvidHttp.open();
  const text = (await readFile(corvidProfile, "utf8")).replace("protocol: grpc", "protocol: connect");
  const file = join(folder, `${++archives}.yaml`);
  await writeFile(file, change(text).replace("corvid.binpb", join(dirname(corvidProfile), "corvid.binpb")));
  const dir = join(folder, `${++archives}`);
  const { status, stderr } = await runInside([
    ...["archive", `${judged.instanceId}/${judged.runId}`, "--archive", dir, "--profile", file],
    ...["--gateway", gateway.url, "--settle", "1ms", "--quiet"],
  ]);
  expect([status, stderr]).toEqual([0, expect.any(String)]);
  const archive = await openArchive(dir);
  const manifest = await archive.manifest(judged);
  for (const name of corvidShape.tables) {
    expect(manifest?.tables[name]?.state).toBe("COMPLETE");
    const lines = await segmentLines(archive, judged, name);
    expect(lines.map((line) => withoutExtra(line, name))).toEqual(truth(gateway.corvid, name));
  }
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

/** By table: its state and the code of what kept it from more; WRONG where what is proven is not what is true. */
async function outcome(faults: CorvidFaults, ...more: string[]) {
  return await outcomeBy(corvidProfile, faults, ...more);
}

async function outcomeBy(file: string, faults: CorvidFaults, ...more: string[]) {
  await using corvid = await Corvid.open(faults);
  const dir = join(folder, `${++archives}`);
  const { status, stderr } = await runInside([
    ...["archive", `${judged.instanceId}/${judged.runId}`, "--archive", dir, "--profile", file],
    ...["--gateway", corvid.url, "--settle", "1ms", "--retries", "3", "--quiet", ...more],
  ]);
  const archive = await openArchive(dir).catch(() => null);
  const manifest = await archive?.manifest(judged);
  const found = { fills: "", factors: "" };
  for (const name of corvidShape.tables) {
    const table = manifest?.tables[name];
    const code = table?.attempt.error?.code;
    const words = [table?.state ?? "nothing", ...(code === undefined ? [] : [code])].join(" ");
    const isProven = (table?.proven ?? null) !== null && table!.proven!.certificate !== null;
    const held = isProven
      ? (await segmentLines(archive!, judged, name)).map((line) => withoutExtra(line, name))
      : [];
    // rows of one time with numbers of their own may stand in another order, and are sorted when they are read
    const isTrue = !isProven || JSON.stringify(held.sort()) === JSON.stringify(truth(corvid, name).sort());
    found[name] = isTrue ? words : `WRONG ${words}`;
  }
  return { ...found, status, stderr, corvid, archive };
}

test("by its profile alone a gateway that speaks gRPC is archived with the row hashes of what it holds", async () => {
  const { fills, factors, status, stderr, archive, corvid } = await outcome({});
  expect([fills, factors, status, stderr]).toEqual(["COMPLETE", "COMPLETE", 0, expect.any(String)]);
  for (const name of corvidShape.tables) {
    const lines = await parquetLines(archive!, judged, name);
    expect(lines.map((line) => withoutExtra(line, name))).toEqual(truth(corvid, name));
    expect(await rowHash(lines.map((line) => withoutExtra(line, name)))).toEqual(
      await rowHash(truth(corvid, name)),
    );
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

describe.each(Object.entries(harmless))("%s", (_name, faults) => {
  test("costs nothing but time", async () => {
    const { fills, factors, status, stderr } = await outcome(faults);
    expect([fills, factors, status, stderr]).toEqual(["COMPLETE", "COMPLETE", 0, expect.any(String)]);
  });
});

/** Faults that last, and how the tables end. */
const lasting: Readonly<Record<string, readonly [CorvidFaults, string]>> = {
  "answers without trailers": [{ ends: "without trailers" }, "stream_cut"],
  "answers without a grpc-status": [{ ends: "without status" }, "stream_cut"],
  "answers that are cut": [{ ends: "cut" }, "stream_cut"],
  "a length that is too long": [{ ends: "long length" }, "stream_cut"],
  "a length that is too short": [{ ends: "short length" }, "stream_cut"],
  "a token that leads to itself": [{ tokens: "same" }, "stream_cut"],
  "tokens in a circle": [{ tokens: "circle" }, "stream_cut"],
  "a token that is ignored": [{ ignores: "page" }, "stream_cut"],
  "a page size that is ignored": [{ ignores: "limit" }, "refused"],
};

test.each(Object.entries(lasting))("%s: no table is complete", async (_name, [faults, code]) => {
  const { fills, factors, status } = await outcome(faults, "--retries", "0");
  expect([fills, factors, status]).toEqual([
    expect.stringMatching(new RegExp(`^(nothing|INCOMPLETE|UNVERIFIED).* ${code}$`)),
    expect.stringMatching(new RegExp(`^(nothing|INCOMPLETE|UNVERIFIED).* ${code}$`)),
    expect.toSatisfy((exit: number) => exit !== 0),
  ]);
});

test("messages in a compression that nobody asked for are refused by its name", async () => {
  const { fills, factors, status, stderr } = await outcome({ encoding: "deflate" });
  expect([fills, factors, status]).toEqual(["nothing", "nothing", 9]);
  expect(stderr).toMatch(/compressed a message by deflate, not gzip/);
});

/** Faults of which one table, or both, may be told apart from what is true, and never taken for it. */
const dangerous: Readonly<Record<string, CorvidFaults>> = {
  "the run ignored": { ignores: "run" },
  "the instance ignored": { ignores: "instance" },
  "from ignored": { ignores: "from" },
  "to ignored": { ignores: "to" },
  "ties in another order for each query": { ties: "query" },
  "ties in another order on each page": { ties: "page" },
  "a page left out": { pageMissing: true },
  "a row of another run": { foreignRow: true },
  "three rows of a timestamp alone": { capInTimestamp: 3 },
};

test.each(Object.entries(dangerous))("%s: nothing wrong is called complete", async (name, faults) => {
  const { fills, factors, status, stderr } = await outcome(faults, "--retries", "0");
  expect(`${name}: ${fills}, ${factors}, exit ${status}\n${stderr}`).not.toMatch(/WRONG/);
});

test("answers that end inside a timestamp are completed by the filter, and with it ignored by nothing", async () => {
  const text = await readFile(corvidProfile, "utf8");
  const begin = text.indexOf("    storage:\n");
  const file = join(folder, `${++archives}.yaml`);
  const uncounted = `${text.slice(0, begin)}${text.slice(text.indexOf("    summary:\n"))}`;
  await writeFile(file, uncounted.replace("corvid.binpb", join(dirname(corvidProfile), "corvid.binpb")));
  const words: string[] = [];
  for (const profile of [corvidProfile, file]) {
    for (const ignores of [{}, { ignores: "filter" }] as const) {
      const { fills, factors } = await outcomeBy(profile, { cap: 4, ...ignores }, "--retries", "0");
      words.push(`${fills}, ${factors}`);
    }
  }
  const capped = "INCOMPLETE timestamp_capped, INCOMPLETE timestamp_capped";
  // factors have no filter here, and without counts nothing shows that a filter brings all
  expect(words).toEqual(["COMPLETE, INCOMPLETE timestamp_capped", capped, capped, capped]);
});
