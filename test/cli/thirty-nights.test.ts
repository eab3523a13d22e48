import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { openArchive } from "../../src/archive/archive.ts";
import type { TableName } from "../../src/model/profile/table.ts";
import { serve } from "../../src/serve/server.ts";
import { parquetLines, segmentLines } from "../fixtures/archive/archived-lines.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { type MonthManners, MonthOfRuns, monthTables, nightTime } from "../fixtures/source/month-of-runs.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-nights-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));
beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"] }));
afterEach(() => void vi.useRealTimers());

const days = 86_400_000_000_000n;
/** Ranges of at most 31 days, also where a bound is open. */
const month = { longestNs: 31n * days };

interface Nights {
  readonly manners: MonthManners;
  /** Another address each night. */
  readonly moves?: boolean;
}

const gateways: Record<string, Nights> = {
  "has facts and versions, and another port each night": { manners: {}, moves: true },
  "has neither, as the interface document shows": { manners: { literal: true } },
  "answers 200 and nothing to runs it does not know": { manners: { literal: true, unknownRuns: "empty" } },
  "refuses ranges of more than 31 days": { manners: { literal: true, ...month, longer: "refused" } },
  "cuts ranges down to 31 days, and has no versions": {
    manners: { unversioned: true, ...month, longer: "cutDown" },
  },
  "keeps rows for eight days": { manners: { retentionDays: 8 } },
  "keeps rows for eight days, counts none and has another port each night": {
    manners: { literal: true, retentionDays: 8 },
    moves: true,
  },
};

/** Serves a month's runs and archives them into `dir`, night after night. */
async function thirtyNights(dir: string, { manners, moves = false }: Nights) {
  const runs = new MonthOfRuns(manners);
  const literal = manners.literal === true;
  const open = () => serve({ source: runs, host: "127.0.0.1", port: 0, literal, onError: () => {} });
  /** All lines that were there on any night, by run and table. */
  const truth = new Map<string, Set<string>>();
  const failed: { night: number; text: string }[] = [];
  let empty: string[] = [];
  let served = await open();
  const archive = async (...what: string[]): Promise<string[]> => {
    const where = ["--gateway", served.url, "--archive", dir, "--retries", "0"];
    const words = empty.length === 0 ? [] : ["--empty", empty.join(",")];
    const tables = ["--tables", monthTables.join(",")];
    const { status, stdout, stderr } = await runInside(["archive", ...what, ...tables, ...where, ...words]);
    if (status !== 0) failed.push({ night: runs.night, text: `${status}\n${stdout}${stderr}` });
    return [...stdout.matchAll(/run again with --empty (\w+)/g)].map((match) => match[1]!);
  };
  try {
    for (runs.night = 0; runs.night < 30; runs.night++) {
      vi.setSystemTime(Number(nightTime(runs.night) / 1_000_000n));
      if (moves && runs.night > 0) {
        const before = served;
        served = await open();
        await before.close();
      }
      const remedies = await archive("--all", "--finished");
      const growing = runs.growing.map(({ instanceId, runId }) => `${instanceId}/${runId}`);
      if (growing.length > 0) remedies.push(...(await archive(...growing)));
      // the word is given once, on the second night
      empty = runs.night === 0 ? [...new Set(remedies)] : [];
      for (const { instanceId, runId } of runs.there) {
        for (const table of monthTables) {
          const key = JSON.stringify([instanceId, runId, table]);
          const lines = runs.lines({ instanceId, runId }, table);
          truth.set(key, new Set([...(truth.get(key) ?? []), ...lines]));
        }
      }
    }
  } finally {
    await served.close();
  }
  return { truth, failed };
}

test.each(Object.entries(gateways))(
  "thirty nights of a gateway that %s",
  async (name, nights) => {
    const dir = join(folder, name.replaceAll(/\W/g, "-"));
    const { truth, failed } = await thirtyNights(dir, nights);
    // where nothing is counted, the first night may ask for the operator's word
    const firstToPass = nights.manners.literal ? 1 : 0;
    expect(failed.filter(({ night }) => night >= firstToPass)).toEqual([]);

    expect(truth.size).toBe(20 * monthTables.length);
    const archive = await openArchive(dir);
    const unfinished: string[] = [];
    for (const [key, lines] of truth) {
      const [instanceId, runId, table] = JSON.parse(key) as [string, string, TableName];
      const run = { instanceId, runId };
      expect([key, await segmentLines(archive, run, table)]).toEqual([key, [...lines]]);
      expect([key, await parquetLines(archive, run, table)]).toEqual([key, [...lines]]);
      const { state } = (await archive.manifest(run))!.tables[table]!;
      if (state !== "COMPLETE") unfinished.push(`${runId} ${state}`);
    }
    expect(unfinished).toEqual(Array(monthTables.length).fill("b8 OPEN"));
    // thirty jobs take forty seconds with two cores, and several times as long beside other work
  },
  400_000,
);
