// @module-tag slow
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { mkdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { exit } from "../../../src/model/error.ts";
import { JobWorld } from "../../fixtures/pipeline/job-world.ts";

test("an export that fails undoes nothing, and the others are made", async () => {
  await using world = await JobWorld.open(1, 2);
  await mkdir(join(world.folder, "in-the-way.csv"));
  const file = await world.write({
    after: {
      exports: [
        { tables: ["fills"], out: "in-the-way.csv" },
        { tables: ["fills"], out: "fills.csv" },
      ],
    },
  });
  const { exit: status, after, result } = await world.execute(file);
  expect(after.map(({ result: came }) => came)).toEqual(["done", "failed", "done"]);
  expect(after[1]!.error?.message).not.toContain("--");
  expect(status).toBe(exit.usage);
  expect(result.states).toEqual({ COMPLETE: 2 });
  expect(result.troubles.map(({ kind }) => kind)).toContain("after");
});

test("an export is made anew only where its rows or its filter changed, or it is gone", async () => {
  await using world = await JobWorld.open(1, 2);
  const exported = async (one: object) => {
    const exports = [{ tables: ["fills"], out: "fills.csv", ...one }];
    return (await world.execute(await world.write({ after: { exports } }))).after.at(-1)!.result;
  };
  expect(await exported({})).toBe("done");
  expect(await exported({})).toBe("unchanged");
  expect(await exported({ decimals: "double" })).toBe("done");
  expect(await exported({ decimals: "double" })).toBe("unchanged");
  await rm(join(world.folder, "fills.csv"));
  expect(await exported({ decimals: "double" })).toBe("done");
  world.runs.gone.add(world.runs.sources[0]!);
  expect(await exported({ decimals: "double" })).toBe("unchanged");
});

test("an export has the job's own runs, and only rows of its symbols and of its time", async () => {
  await using world = await JobWorld.open(2, 1);
  const lines = async (one: object, runs: object = {}) => {
    const exports = [{ tables: ["fills"], out: "fills.csv", ...one }];
    const { after } = await world.execute(await world.write({ runs, after: { exports } }));
    expect(after.at(-1)).toMatchObject({ result: "done" });
    return (await readFile(join(world.folder, "fills.csv"), "utf8")).trimEnd().split("\n").length - 1;
  };
  expect(await lines({})).toBe(6);
  expect(await lines({}, { instances: ["i1"] })).toBe(3);
  expect(await lines({ last: "1d" })).toBe(0);
  expect(await lines({ symbols: ["NO-SUCH"] })).toBe(0);
});

test("damage to a run that changed is found, and ends the job with exit status 5", async () => {
  await using world = await JobWorld.open(1, 2);
  const data = join(world.dir, "data", "i1", "r1");
  let isDamaged = false;
  const { exit: status, after } = await world.execute(await world.write(), {
    step: (name) => {
      if (name !== "pending-removed" || isDamaged || !existsSync(data)) return;
      isDamaged = true;
      // the disk is not what it was
      for (const file of readdirSync(data).filter((one) => one.endsWith(".zst"))) {
        const bytes = readFileSync(join(data, file));
        bytes[bytes.length >> 1]! ^= 1;
        writeFileSync(join(data, file), bytes);
      }
    },
  });
  expect(status).toBe(exit.damaged);
  expect(after).toMatchObject([{ what: "verify", result: "failed", error: { code: "archive_damaged" } }]);
});
