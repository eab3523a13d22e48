import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openArchive } from "../../src/archive/archive.ts";
import { tableNames } from "../../src/model/profile/table.ts";
import { segmentLines } from "../fixtures/archive/archived-lines.ts";
import { run } from "../fixtures/command/command-process.ts";
import { requires } from "../fixtures/command/requirement.ts";
import { startIndependentGateway } from "../fixtures/source/independent-gateway.ts";
import {
  archiveFinished,
  btc,
  gbpusd,
  globbedBars,
  queriedBars,
  recordedBars,
  simulate,
  writeFirstBars,
} from "../fixtures/source/recorded-bars.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-real-bars-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));
const inside = (name: string) => join(folder, name);

/** A simulator that is stopped with the stack, and then ends well. */
async function simulatedFor(stack: AsyncDisposableStack, ...args: string[]) {
  const simulator = await simulate(...args);
  stack.defer(async () => expect((await simulator.stop()).status).toBe(0));
  return simulator;
}

describe.skipIf(!requires("recordings"))("a month of recorded bars with volumes", () => {
  test("from the simulator, archived with and without storage facts, is the recording value by value", {
    timeout: 300_000,
  }, async () => {
    const world = ["--bars", btc, "--runs", "1", "--cache", inside("cache")];
    await using simulators = new AsyncDisposableStack();
    const counted = await simulatedFor(simulators, ...world);
    const literal = await simulatedFor(simulators, ...world, "--literal");
    const bars = recordedBars(btc);
    expect(bars).toHaveLength(45_031);
    for (const [name, { url }, proof, transport] of [
      ["auto", counted, "counted", "auto"],
      ["literal", literal, "exhausted", "rest"],
    ] as const) {
      const [done] = await archiveFinished(url, inside(name), proof, ["bars"], transport);
      expect(done!.tables.bars!.rows).toBe(45_031);
      // as one text: vitest compares tens of thousands of strings far slower than one
      expect((await globbedBars(inside(name), done!.runId)).join("\n"), name).toBe(bars.join("\n"));
    }
    expect((await queriedBars(inside("literal"))).join("\n")).toBe(bars.join("\n"));
  });
});

describe.skipIf(!requires("recordings"))("a week of recorded bars, and all that is made of them", () => {
  test("is the same archive with and without storage facts, over REST and RPC, and verifies against the simulator", {
    timeout: 300_000,
  }, async () => {
    const week = inside("week.csv.gz");
    writeFirstBars(btc, 7 * 24 * 60, week);
    const world = ["--bars", week, "--runs", "1", "--cache", inside("cache")];
    await using simulators = new AsyncDisposableStack();
    const counted = await simulatedFor(simulators, ...world);
    const literal = await simulatedFor(simulators, ...world, "--literal");
    await archiveFinished(counted.url, inside("week-rest"), "counted", tableNames, "rest");
    await archiveFinished(counted.url, inside("week-rpc"), "counted", tableNames, "rpc");
    await archiveFinished(literal.url, inside("week-literal"), "exhausted");
    for (const other of ["week-rpc", "week-literal"]) {
      // row hashes of every table are what diff compares
      const { status, stdout } = await run(["maintain", "diff", inside("week-rest"), inside(other)]);
      expect(stdout).toMatch(/^equal$/m);
      expect(status).toBe(0);
    }
    const verify = ["verify", "--deep", "--against", counted.url, "--archive", inside("week-rest")];
    expect(await run(verify)).toMatchObject({ status: 0 });
  });
});

describe.skipIf(!requires("recordings"))("recorded bars without volumes", () => {
  test("have NULL for it in Parquet and the empty string in their lines, from either gateway", {
    timeout: 300_000,
  }, async () => {
    const simulated = await simulate("--bars", gbpusd, "--runs", "1", "--cache", inside("cache"));
    const independent = await startIndependentGateway({ facts: false, bars: gbpusd });
    try {
      const bars = recordedBars(gbpusd);
      expect(bars).toHaveLength(30_117);
      for (const [url, name, proof] of [
        [simulated.url, "simulated", "counted"],
        [independent.url, "made", "exhausted"],
      ] as const) {
        const dir = inside(name);
        const [first] = await archiveFinished(url, dir, proof, ["bars"]);
        expect((await globbedBars(dir, first!.runId)).join("\n")).toBe(bars.join("\n"));
        const archive = await openArchive(dir);
        for (const ref of await archive.manifests()) {
          const lines = await segmentLines(archive, ref, "bars");
          expect(lines.filter((line) => !line.endsWith(',"volume":""}'))).toEqual([]);
        }
      }
      expect((await queriedBars(inside("simulated"))).join("\n")).toBe(bars.join("\n"));
    } finally {
      await independent.close();
      await simulated.stop();
    }
  });
});
