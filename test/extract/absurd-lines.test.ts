// @module-tag slow
import { expect, it } from "vitest";
import { SegmentBuilder } from "../../src/extract/fetch/segment-builder.ts";
import { linesIn, rowsWithin } from "../../src/extract/plan/table-asks.ts";
import { tableNamed } from "../../src/model/profile/table.ts";
import { retryPolicy } from "../../src/model/retry/retry-policy.ts";
import type { HistorySource } from "../../src/model/source.ts";
import { cutText } from "../fixtures/source/cut-text.ts";
import { longestTurnMs, processorMs } from "../fixtures/source/longest-turn.ts";

const run = { instanceId: "a", runId: "run-1" };
const MiB = 1 << 20;

function textOf(): SegmentBuilder {
  const text = new SegmentBuilder({
    run,
    from: undefined,
    to: undefined,
    segmentBytes: 8 * MiB,
    mostBytes: 64 * MiB,
    unsorted: false,
    pool: { acquire: async () => Buffer.alloc(8 * MiB), release: () => {} },
  });
  text.beginAnswer(0n);
  return text;
}

/** Takes an answer in, and gives the text of the cuts that come of it. */
async function push(text: SegmentBuilder, answer: string, chunkBytes = MiB): Promise<string> {
  const bytes = Buffer.from(answer);
  let cut = "";
  for (let at = 0; at < bytes.byteLength; at += chunkBytes)
    cut += await cutText(text.push(bytes.subarray(at, at + chunkBytes)));
  return cut + (await cutText(text.endAnswer()));
}

const row = (i: number) =>
  `{"run_id":"run-1","instance_id":"a","seq":"${i}","ts_event":"${1_640_995_200_000_000_000n + BigInt(i)}","rest":"of the row, some bytes more"}\n`;
const rows = (count: number) => Array.from({ length: count }, (_, i) => row(i)).join("");

it("blank lines ahead of rows cost what their bytes do", async () => {
  const text = textOf();
  const answer = "\n".repeat(100_000) + rows(8000);
  expect(await processorMs(() => push(text, answer, 2 * MiB))).toBeLessThan(1000);
  expect(text.totalRows).toBe(8000);
});

it("blank lines between rows leave the text and nothing else", async () => {
  for (const chunkBytes of [7, 100, 5000, MiB]) {
    const text = textOf();
    const lines = Array.from({ length: 300 }, (_, i) => `${" \t\n\r\n".repeat(i % 3)}${row(i)}`);
    const cut = await push(text, lines.join(""), chunkBytes);
    expect(cut + (await cutText(text.finish()))).toBe(rows(300));
  }
});

it("a byte order mark that comes byte by byte hides no line end behind it", async () => {
  const text = textOf();
  const cut = await push(text, `\ufeff\n${row(0)}`, 1);
  expect(cut + (await cutText(text.finish()))).toBe(row(0));
  expect(text.lastTs).toBe(1_640_995_200_000_000_000n);
});

it("the last group of an answer with blank lines is dropped and asked for again as any other", async () => {
  const text = textOf();
  let cut = await push(text, `${row(0)}\n\n${row(1)}\n${row(2)}\n \n`);
  expect(text.dropLastGroup()).toMatchObject({ ts: 1_640_995_200_000_000_002n, rows: 1 });
  text.beginAnswer(1_640_995_200_000_000_002n);
  cut += await push(text, `\n\n${row(2)}\n${row(3)}`);
  expect(cut + (await cutText(text.finish()))).toBe(rows(4));
});

it("a line in many small chunks is searched once", async () => {
  const text = textOf();
  const long = `{"run_id":"run-1","instance_id":"a","seq":"1","ts_event":"1640995200000000000","rest":"${"x".repeat(2 * MiB)}"}\n`;
  expect(await processorMs(() => push(text, long, 64))).toBeLessThan(2500);
  expect(text.totalRows).toBe(1);
});

it.each([
  ["blank lines", "\n", "an answer has more than 100000 blank lines besides its 1 row"],
  [
    "long blank lines",
    `${" ".repeat(MiB)}\n`,
    "an answer has more than 100000 blank lines besides its 1 row",
  ],
  ["words", "x\n", "an answer has more than 10000 lines that are not rows, besides 1 row; the first: x"],
  ["numbers", "1\n", "an answer has more than 10000 lines that are not rows, besides 1 row; the first: 1"],
  [
    "empty objects",
    "{}\n",
    "an answer has more than 10000 lines that are not rows, besides 1 row; the first: {}",
  ],
  [
    "half objects",
    "{]}\n",
    "an answer has more than 10000 lines that are not rows, besides 1 row; the first: {]}",
  ],
])("an answer of %s ends, and says what came", async (_, line, message) => {
  const text = textOf();
  await cutText(text.push(Buffer.from(row(0))));
  const chunk = Buffer.from(line.repeat(Math.ceil(MiB / line.length)));
  const pushAll = async () => {
    for (let i = 0; i < 200; i++) await cutText(text.push(chunk));
  };
  await expect(pushAll()).rejects.toMatchObject({ code: "malformed_row", message });
});

it("rows that went wrong are as many as may be: conversion sets them aside", async () => {
  const text = textOf();
  const wrong = Array.from({ length: 40_000 }, (_, i) =>
    row(i)
      .replace('"seq":"', '"seq": "')
      .replace('"ts_event":"', '"ts_event":1,"was":"')
      .replace("more", "more".repeat(10)),
  );
  await push(text, wrong.join(""));
  expect(text.totalRows).toBe(40_000);
});

it("lines nested deeper than any row may be are not read", async () => {
  const text = textOf();
  const deep = `{"run_id":"run-1","instance_id":"a","seq":"1","ts_event":"1640995200000000000","rest":${"[".repeat(7 * MiB)}${"]".repeat(7 * MiB)}}\n`;
  expect(await processorMs(() => push(text, row(0) + deep))).toBeLessThan(1000);
  expect(text.totalRows).toBe(2);
  expect(text.lastTs).toBe(1_640_995_200_000_000_000n);
});

it("whatever the lines are, the event loop goes on while they are read", async () => {
  const text = textOf();
  // chunks that are here already, and an error of the parser for each line
  const answer = Buffer.from(`{"a":"${"x".repeat(140)}",}\n`.repeat(250_000));
  const read = async () => {
    for (let at = 0; at < answer.byteLength; at += MiB) await text.push(answer.subarray(at, at + MiB));
  };
  expect(await longestTurnMs(read)).toBeLessThan(400);
});

it("the first row of an answer is looked for behind so many blank lines and no more", async () => {
  async function* endless() {
    for (let i = 0; i < 1000; i++) yield Buffer.alloc(MiB, "\n");
  }
  const lines = linesIn(endless());
  await expect(lines.next()).rejects.toMatchObject({ code: "malformed_row" });
});

it("an answer in chunks of a byte is held as any other, and lines that are too many to be held are none", async () => {
  const source = (answer: string) =>
    ({
      async *rows() {
        for (const byte of Buffer.from(answer)) yield Buffer.of(byte);
      },
    }) as unknown as HistorySource;
  const asks = {
    run,
    table: tableNamed("fills"),
    retry: retryPolicy(),
    signal: new AbortController().signal,
  };
  const window = { from: 0n, to: 1n };
  const found = await rowsWithin({ ...asks, source: source(rows(3)) }, window);
  expect(found?.map((one) => one?.line.toString())).toEqual(rows(3).trim().split("\n"));
  async function* many() {
    for (let i = 0; i < 3; i++) yield Buffer.from("1\n".repeat(MiB / 2));
  }
  const absurd = { rows: many } as unknown as HistorySource;
  expect(await rowsWithin({ ...asks, source: absurd }, window)).toBeUndefined();
});
