import { expect, it } from "vitest";
import type { Came } from "../../src/extract/plan/row-key.ts";
import { probe, rowsWithin, type TableAsks } from "../../src/extract/plan/table-asks.ts";
import { tableNamed } from "../../src/model/profile/table.ts";
import { usualTraits } from "../../src/model/route-traits.ts";
import { run, world } from "../fixtures/archive/table-world.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";

const mebibyte = 1024 * 1024;

/** Questions to a source whose every answer is these chunks, and how many of them were taken. */
function asksOf(chunks: Iterable<Uint8Array>) {
  const taken = { chunks: 0 };
  const source = new ArraySource(run, world({}));
  source.rows = async function* () {
    for (const chunk of chunks) {
      taken.chunks++;
      yield chunk;
    }
  };
  const { signal } = new AbortController();
  const asks: TableAsks = { source, run, table: tableNamed("fills"), retry: quickRetry(), signal };
  return { asks, taken };
}

const within = { from: 0n, to: 10n };

function* times(count: number, chunk: Uint8Array): Iterable<Uint8Array> {
  for (let i = 0; i < count; i++) yield chunk;
}

it("a probe takes the first line that has anything in it, however it is cut, and no more of the answer", async () => {
  const pieces = ["\uFEFF", "\n  \n", '{"ts_ev', 'ent":"', '7"}', "\n", "never"].map((text) =>
    Buffer.from(text),
  );
  const { asks, taken } = asksOf(pieces);
  expect(await probe(asks, within)).toMatchObject({ ts: 7n });
  expect(taken.chunks).toBe(6);
  expect(await probe(asksOf(pieces.slice(0, 5)).asks, within)).toMatchObject({ ts: 7n });
  expect(await probe(asksOf(pieces.slice(0, 2)).asks, within)).toBe(undefined);
});

// alone finds: rows that came with the first one, and that the table lacks, are forgotten
it("a probe without a limit tells of the rows that came with the first one, though the answer breaks off", async () => {
  const row = (ts: number) => Buffer.from(`{"seq":"${ts}","ts_event":"${ts}"}\n`);
  const { asks } = asksOf([]);
  const traits = { ...usualTraits, takesLimit: false };
  const source = Object.assign(asks.source, { traits: () => traits });
  source.rows = async function* () {
    yield* [row(7), row(8), row(8), row(12)];
    throw new Error("cut");
  };
  const came: Came[] = [];
  expect(await probe({ ...asks, onCame: (_, one) => came.push(one) }, within)).toMatchObject({ ts: 7n });
  expect(came).toEqual([{ from: 7n, to: 9n, rows: 2, firstKey: "7", lastKey: "8" }]);
});

// alone finds: a command with one answer at a time waits for ever to ask why a row lies outside its bounds
it("a probe asks why a row lies outside once its answer is closed", async () => {
  const { asks } = asksOf([]);
  let open = 0;
  const opened: number[] = [];
  asks.source.rows = async function* () {
    opened.push(++open);
    try {
      yield Buffer.from('{"seq":"1","ts_event":"12"}\n');
    } finally {
      open--;
    }
  };
  await expect(probe(asks, within)).rejects.toMatchObject({ code: "history_identity_conflict" });
  expect(opened.length).toBeGreaterThan(1);
  expect(new Set(opened)).toEqual(new Set([1]));
});

it("a probe stops at a line that is longer than lines are", async () => {
  const { asks, taken } = asksOf(times(40, Buffer.alloc(mebibyte, "x")));
  await expect(probe(asks, within)).rejects.toMatchObject({
    code: "line_too_long",
    message: "a line is longer than 16 MiB",
  });
  expect(taken.chunks).toBe(17);
});

it("a probe's error shows no control characters, no secrets and no more than 300 characters of the row", async () => {
  const line = `{"run_id":"other","symbol":"\u009b2J \u202eBearer sk-secret ${"x".repeat(400)}"}\n`;
  const { message } = (await probe(asksOf([Buffer.from(line)]).asks, within).catch(
    (thrown) => thrown,
  )) as Error;
  expect(message).toMatch(
    /^asked for one row in \[0, 10\), the gateway sent \{"run_id":"other","symbol":" Bearer \*\*\* x+…$/u,
  );
  expect(message.length).toBe("asked for one row in [0, 10), the gateway sent ".length + 300);
});

// what came and was not kept would be forgotten, and a table called whole without it
it("the caller hears how many rows a probe or a small answer brought, and of what times", async () => {
  const row = (ts: number) => Buffer.from(`{"ts_event":"${ts}","seq":"${ts}"}\n`);
  const { asks } = asksOf([row(3), row(4), row(7)]);
  const came: unknown[] = [];
  const heard = {
    ...asks,
    onCame: (_: TableAsks, { from, to, rows }: Came) => came.push({ from, to, rows }),
  };
  await probe(heard, within);
  await rowsWithin(heard, within);
  expect(came).toEqual([
    { from: 3n, to: 4n, rows: 1 },
    { from: 3n, to: 8n, rows: 3 },
  ]);
});

it("rows of a window are not held beyond 128 MiB", async () => {
  const { asks, taken } = asksOf(times(200, Buffer.alloc(mebibyte, "\n")));
  expect(await rowsWithin(asks, within)).toBe(undefined);
  expect(taken.chunks).toBe(129);
});
