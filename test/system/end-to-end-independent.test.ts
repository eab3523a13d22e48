import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openArchive } from "../../src/archive/archive.ts";
import { tableNames } from "../../src/model/table.ts";
import { parquetLines, segmentLines } from "../fixtures/archive/archived-lines.ts";
import { run } from "../fixtures/command/command-process.ts";
import { requires } from "../fixtures/command/requirement.ts";
import { type IndependentGateway, startIndependentGateway } from "../fixtures/source/independent-gateway.ts";
import { archiveFinished, btc, globbedBars, recordedBars } from "../fixtures/source/recorded-bars.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-real-bars-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));
const inside = (name: string) => join(folder, name);

describe.skipIf(!requires("recordings"))("a month of recorded bars with volumes", () => {
  test("from a gateway that shares no code, archived with and without storage facts, is what it served", {
    timeout: 300_000,
  }, async () => {
    const gateways: IndependentGateway[] = [];
    try {
      for (const facts of [true, false]) {
        const gateway = await startIndependentGateway({ facts, bars: btc });
        gateways.push(gateway);
        const dir = inside(`independent-${facts}`);
        const runs = await archiveFinished(gateway.url, dir, facts ? "counted" : "exhausted");
        expect(runs.map(({ runId }) => runId)).toEqual(gateway.runs("momentum-1"));
      }
      const archive = await openArchive(inside("independent-true"));
      for (const runId of gateways[0]!.runs("momentum-1")) {
        for (const table of tableNames) {
          const served = gateways[0]!.lines("momentum-1", runId, table);
          const ref = { instanceId: "momentum-1", runId };
          // compared as one text: a difference in the middle of half a million lines is found as fast as none
          expect((await segmentLines(archive, ref, table)).join("\n")).toBe(served.join("\n"));
          expect((await parquetLines(archive, ref, table)).join("\n")).toBe(served.join("\n"));
        }
      }
      const globbed = await globbedBars(inside("independent-true"), "2022/a:1");
      expect(globbed.join("\n")).toBe(recordedBars(btc).join("\n"));

      const [diff, verified] = await Promise.all([
        run(["diff", inside("independent-true"), inside("independent-false")]),
        run(["verify", "--deep", "--archive", inside("independent-false")]),
      ]);
      expect(diff.stdout).toMatch(/^equal$/m);
      expect([diff.status, verified.status]).toEqual([0, 0]);
    } finally {
      for (const gateway of gateways) await gateway.close();
    }
  });
});
