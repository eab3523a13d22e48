// @module-tag slow
import { expect, it } from "vitest";
import { run, TableWorld, world } from "../fixtures/archive/table-world.ts";
import { ArraySource } from "../fixtures/source/array-source.ts";

const fills = Array.from({ length: 60 }, (_, i) => Math.min(i, 57));
const orders = Array.from({ length: 90 }, (_, i) => i);

// the last timestamp, which is asked for by itself, has several rows: those answers are told of doubles apart
it.each([{ literal: true }, {}])(
  "rows that come twice in every answer are taken once, and prove as much, manners %j",
  async (manners) => {
    await using tables = await TableWorld.create();
    const rows = world({ fills, orders });
    const honest = new ArraySource(run, rows, manners);
    const twice = [...rows].map(([name, own]) => [name, own.flatMap((row) => [row, row])] as const);
    const source = new ArraySource(run, new Map(twice), { ...manners, chunkBytes: 301 });
    source.facts = honest.facts.bind(honest);
    const { manifest } = await tables.archiveRun(source);
    expect(manifest).toMatchObject({ state: "COMPLETE" });
    await tables.expectRows("fills", rows.get("fills")!);
    await tables.expectRows("orders", rows.get("orders")!);
  },
);
