import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openArchive } from "../../src/archive/archive.ts";
import { tableNames } from "../../src/model/profile/table.ts";
import { parquetLines, segmentLines } from "../fixtures/archive/archived-lines.ts";
import { run } from "../fixtures/command/command-process.ts";
import { requires } from "../fixtures/command/requirement.ts";
import {
  expectArchivedThroughChanges,
  expectOtherRunRefused,
} from "../fixtures/source/independent-archive.ts";
import {
  type IndependentGateway,
  type IndependentGatewayOptions,
  startIndependentGateway,
} from "../fixtures/source/independent-gateway.ts";
import {
  archiveFinished,
  btc,
  globbedBars,
  recordedBars,
  writeFirstBars,
} from "../fixtures/source/recorded-bars.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-real-bars-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));
const inside = (name: string) => join(folder, name);

describe.skipIf(!requires("recordings"))("a week of recorded bars with volumes", () => {
  test("from a gateway that shares no code, archived with and without storage facts, is what it served", {
    timeout: 300_000,
  }, async () => {
    const gateways: IndependentGateway[] = [];
    const week = inside("week.csv.gz");
    writeFirstBars(btc, 7 * 24 * 60, week);
    try {
      for (const facts of [true, false]) {
        const gateway = await startIndependentGateway({ facts, bars: week });
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
      expect(globbed.join("\n")).toBe(recordedBars(week).join("\n"));

      const [diff, verified] = await Promise.all([
        run(["maintain", "diff", inside("independent-true"), inside("independent-false")]),
        run(["verify", "--deep", "--archive", inside("independent-false")]),
      ]);
      expect(diff.stdout).toMatch(/^equal$/m);
      expect([diff.status, verified.status]).toEqual([0, 0]);
    } finally {
      for (const gateway of gateways) await gateway.close();
    }
  });
});

// test/cli/independent-gateway.test.ts has more of what such a gateway does
const month = 31n * 86_400_000_000_000n;
const gateways: Record<string, IndependentGatewayOptions> = {
  "facts and no versions, and ranges of 31 days that it refuses beyond": {
    ...{ facts: true, versions: false, longest: { ns: month, longer: "refused" } },
  },
  "facts and ranges cut down to 31 days": { facts: true, longest: { ns: month, longer: "cutDown" } },
  "nothing but rows, and empty answers for what it does not know": {
    ...{ facts: false, unknownRuns: "empty", noContent: true },
  },
  "nothing but rows, and ranges of 31 days": { facts: false, longest: { ns: month, longer: "cutDown" } },
};

describe.each(Object.entries(gateways))("a gateway that shares no code, with %s", (_, options) => {
  test("is archived while a run grows, ends, changes in place, is forgotten row by row, and gone", () =>
    expectArchivedThroughChanges(options));

  test("has another run under an id: it is refused, and what was proven stays", () =>
    expectOtherRunRefused(options));
});
