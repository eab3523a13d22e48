import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openArchive } from "../../src/archive/archive.ts";
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
} from "../fixtures/source/recorded-bars.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-real-bars-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));
const inside = (name: string) => join(folder, name);

describe.skipIf(!requires("recordings"))("a month of recorded bars with volumes", () => {
  test("from the simulator, archived with and without storage facts, over REST, RPC and both, is the recording value by value", {
    timeout: 180_000,
  }, async () => {
    const world = ["--bars", btc, "--runs", "1", "--cache", inside("cache")];
    const counted = await simulate(...world);
    let literal: Awaited<ReturnType<typeof simulate>> | undefined;
    try {
      const [done] = await archiveFinished(counted.url, inside("counted"), "counted");
      literal = await simulate(...world, "--literal");
      await archiveFinished(literal.url, inside("exhausted"), "exhausted");

      const bars = recordedBars(btc);
      expect(bars).toHaveLength(45_031);
      expect(done!.tables.bars!.rows).toBe(45_031);
      const [globbed, queried] = await Promise.all([
        globbedBars(inside("counted"), done!.runId),
        queriedBars(inside("exhausted")),
      ]);
      // as one text: vitest compares tens of thousands of strings far slower than one
      expect(globbed.join("\n")).toBe(bars.join("\n"));
      expect(queried.join("\n")).toBe(bars.join("\n"));

      for (const transport of ["rest", "rpc"]) {
        await archiveFinished(counted.url, inside(transport), "counted", undefined, transport);
        // row hashes of every table are what diff compares
        const same = await run(["diff", inside("counted"), inside(transport)]);
        expect(same.stdout).toMatch(/^equal$/m);
        expect(same.status).toBe(0);
      }

      const [diff, verified] = await Promise.all([
        run(["diff", inside("counted"), inside("exhausted")]),
        run(["verify", "--deep", "--against", counted.url, "--archive", inside("counted")]),
      ]);
      expect(diff.stdout).toMatch(/^equal$/m);
      expect(diff.status).toBe(0);
      expect(verified.status).toBe(0);
    } finally {
      for (const { status } of [await counted.stop(), await literal?.stop()].filter((it) => it !== undefined))
        expect(status).toBe(0);
    }
  });
});

describe.skipIf(!requires("recordings"))("recorded bars without volumes", () => {
  test("have NULL for it in Parquet and the empty string in their lines, from either gateway", {
    timeout: 120_000,
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
