// @module-tag slow
import { readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { hours, run, TableWorld, world } from "../../fixtures/archive/table-world.ts";
import { ArraySource } from "../../fixtures/source/array-source.ts";

// nothing but the segments tells of the row: the pass ahead of them came from a node that lacks it
it("rows of segments that are damaged when their job is resumed came all the same", async () => {
  await using tables = await TableWorld.create();
  const source = new ArraySource(run, world({ fills: hours(60) }), { literal: true });
  const whole = source.tables.get("fills")!;
  const lacking = whole.toSpliced(3, 1);
  source.tables.set("fills", lacking);
  const job = tables.archiveRun(source, {
    step: (name) => {
      if (name === "survey-journalled") source.tables.set("fills", whole);
      if (name === "converted") throw new Error("killed");
    },
  });
  await expect(job).rejects.toThrow("killed");
  const folder = tables.archive.layout.pendingDir(run);
  for (const name of await readdir(folder))
    if (name.endsWith(".zst")) await writeFile(join(folder, name), "damaged");
  source.tables.set("fills", lacking);
  const { manifest } = await tables.archiveRun(source);
  expect(manifest.tables.fills!.attempt).toMatchObject({
    outcome: expect.stringMatching(/INCOMPLETE|UNVERIFIED/),
    error: { message: expect.stringMatching(/^the gateway sent \d+ rows in .*are here/) },
  });
  // looks that agree let it go by the next job
  const again = await tables.archiveRun(source);
  expect(again.manifest.tables.fills!.attempt).toMatchObject({ outcome: "ok" });
});

// rows that are held are in no record of the attempt: nothing else tells of them once their file is gone
it("rows of a segment that was never proven and is missing now came all the same", async () => {
  await using tables = await TableWorld.create();
  const source = new ArraySource(run, world({ fills: hours(60) }));
  const { manifest } = await tables.archiveRun(source, { settings: { require: "hashed" } });
  const { holding, outcome } = manifest.tables.fills!.attempt;
  expect(outcome).toBe("UNVERIFIED");
  await rm(join(tables.archive.layout.dataDir(run), holding!.segments[0]!.file));
  source.tables.set("fills", source.tables.get("fills")!.toSpliced(3, 1));
  const second = await tables.archiveRun(source);
  expect(second.manifest.tables.fills!.attempt.notes.join()).toMatch(/an earlier attempt saw \d+ rows/);
});

// the count of a node that lacks the row agrees with its rows: only the job that was killed was sent more
it("rows that were counted otherwise came all the same, where their job is resumed", async () => {
  await using tables = await TableWorld.create();
  const source = new ArraySource(run, world({ fills: hours(60) }));
  const lacking = new ArraySource(run, world({ fills: hours(60) }));
  lacking.tables.set("fills", source.tables.get("fills")!.toSpliced(3, 1));
  let factsLeft = Number.POSITIVE_INFINITY;
  source.facts = async (...asked) => {
    if (--factsLeft < 0) throw new Error("killed");
    return await lacking.facts(...asked);
  };
  const job = tables.archiveRun(source, {
    // the rows are counted once more, and then doubted
    step: (name) => {
      if (name === "segment-journalled") factsLeft = 1;
    },
  });
  await expect(job).rejects.toThrow("killed");
  const { manifest } = await tables.archiveRun(lacking);
  expect(manifest.tables.fills!.attempt).toMatchObject({
    outcome: expect.stringMatching(/INCOMPLETE|UNVERIFIED/),
    error: { message: expect.stringMatching(/^the gateway sent \d+ rows/) },
  });
});
