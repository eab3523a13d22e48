// @module-tag slow
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { runInside } from "../fixtures/command/command-inside.ts";
import { type IndependentGateway, startIndependentGateway } from "../fixtures/source/independent-gateway.ts";
import { makeBars } from "../fixtures/source/independent-rows.ts";

const noon = Date.UTC(2022, 0, 1, 12);
const hour = 3_600_000;
const growing = "2022/a:1";
const ended = "run-2";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runvault-requests-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"] });
  vi.setSystemTime(noon);
});
afterEach(() => void vi.useRealTimers());

/** Requests of one job each: of a run that has ended, and of one that goes on, on its first and second night. */
async function requestsOf(facts: boolean) {
  // one of the runs goes on for ninety minutes from nine o'clock on
  const made = makeBars(90, BigInt(noon - 3 * hour) * 1_000_000n);
  const gateway = await startIndependentGateway({ facts, made });
  const dir = await mkdtemp(join(folder, "archive-"));
  const run = gateway.run(growing);
  run.growTo(run.at(999));
  try {
    return {
      ended: await requestsFor(gateway, dir, ended),
      first: await requestsFor(gateway, dir, growing, "--settle", "150m"),
      second: await requestsFor(gateway, dir, growing, "--settle", "130m"),
    };
  } finally {
    await gateway.close();
  }
}

async function requestsFor(gateway: IndependentGateway, dir: string, run: string, ...more: string[]) {
  const before = gateway.requests.length;
  const where = ["--gateway", gateway.url, "--archive", dir, "--transport", "rest", "--retries", "0"];
  const { status, stdout } = await runInside(["archive", `momentum-1/${run}`, ...where, ...more]);
  expect([status, stdout]).toEqual([0, stdout]);
  const byPath: Record<string, number> = {};
  for (const path of gateway.requests.slice(before)) {
    const name = path.split("?", 1)[0]!.replace("/api/v1/", "").replace("history/", "");
    byPath[name] = (byPath[name] ?? 0) + 1;
  }
  return byPath;
}

const sumOf = (asked: Record<string, number>) => Object.values(asked).reduce((sum, count) => sum + count, 0);

describe("requests that prove rows", () => {
  test("are one more on a growing run's second night, with facts, than when no outer ends were asked about", async () => {
    const { second } = await requestsOf(true);
    // 31, one for the table that had no rows: facts may not count its first one yet, and five for totals
    expect(sumOf(second)).toBeLessThanOrEqual(37);
    // each table's new rows at once, and nothing of those that are held but their counts
    const rows = ["fills", "orders", "bars", "order-book", "factors", "portfolio/equity"];
    expect(second).toMatchObject(Object.fromEntries(rows.map((name) => [name, 1])));
  });

  test("are, without facts, at most ten more a table than two passes take that ask about no ends", async () => {
    const passes = {
      ended: [8, 8, 8, 8, 8, 10, 8, 4],
      first: [9, 9, 9, 9, 9, 11, 9, 2],
      second: [6, 6, 6, 6, 6, 7, 6, 2],
    };
    const asked = await requestsOf(false);
    const paths = ["fills", "orders", "bars", "order-book", "factors", "events"];
    for (const job of ["ended", "first", "second"] as const) {
      for (const [index, path] of [...paths, "portfolio/equity", "portfolio/metrics"].entries()) {
        // eight about the outer ends, and one at each end within the run's own times
        const most = passes[job][index]! + 10;
        expect([job, path, asked[job][path]! <= most]).toEqual([job, path, true]);
      }
    }
  });
});
