import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  type ReconcileReport,
  reconcileReportSchema,
} from "../../src/analytics/reconcile/reconcile-report.ts";
import { openArchive } from "../../src/archive/archive.ts";
import { openArchiveSource } from "../../src/archive/read/archive-source.ts";
import type { HistorySource } from "../../src/model/source.ts";
import { instanceIdOf } from "../../src/simulator/world/run-numbers.ts";
import { faultFindings } from "../fixtures/analytics/fault-findings.ts";
import { runInside, startInside } from "../fixtures/command/command-inside.ts";
import { requires } from "../fixtures/command/requirement.ts";
import { bookBreaks, rowsOf } from "../fixtures/source/book-check.ts";
import { btc, gbpusd } from "../fixtures/source/recorded-bars.ts";

/** The bars that are traded: the first so many of the file. */
const bars = 400;

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "runvault-recorded-"));
});
afterAll(async () => {
  await rm(dir, { recursive: true, force: true });
});

interface Recorded {
  readonly archive: HistorySource;
  readonly report: ReconcileReport;
  readonly status: number | null;
}

type Finding = (typeof faultFindings)[number];

/** A world of the file's first bars with an instance for each fault, archived and reconciled by the commands. */
async function reconciledRecording(
  name: string,
  file: string,
  accounting: "spot" | "margin",
  faults: readonly Finding[],
): Promise<Recorded> {
  const part = join(dir, `${name}.csv`);
  const lines = gunzipSync(readFileSync(file)).toString("utf8").split("\n");
  await writeFile(part, `${lines.slice(0, bars + 1).join("\n")}\n`);
  const names = Array.from({ length: faults.length + 1 }, (_, instance) => instanceIdOf(instance));
  const specs = faults.flatMap(([kind], place) => ["--fault", `${kind}@${names[place]}`]);
  const args = ["--bars", part, "--instances", `${names.length}`, "--runs", "1", "--transfers", "4"];
  const gateway = startInside(["simulate", ...args, "--accounting", accounting, ...specs, "--cache", dir]);
  const url = await gateway.firstLine();
  const into = join(dir, `archive-${name}`);
  const archived = await runInside(["archive", "--all", "--finished", "--gateway", url, "--archive", into]);
  gateway.signal("SIGTERM");
  await gateway.finished;
  // no fault is one that an archive could notice
  expect(archived.status).toBe(0);
  const archive = openArchiveSource(await openArchive(into));
  const listed = await Promise.all(names.map(async (own) => (await archive.runs(own))![0]!));
  const runs = listed.map(({ instanceId, runId }) => `${instanceId}/${runId}`);
  const { status, stdout } = await runInside(["reconcile", ...runs, "--archive", into, "--json"]);
  return { archive, status, report: reconcileReportSchema.parse(JSON.parse(stdout)) };
}

test.runIf(requires("recordings")).each([
  ["btc", btc, "spot"],
  ["gbpusd", gbpusd, "margin"],
] as const)(
  "on %s bars each fault of one half is found by one check alone, at the right row, and books without one balance",
  { timeout: 300_000 },
  async (name, file, accounting) => {
    const faults = faultFindings.filter((_, place) => place % 2 === (accounting === "spot" ? 0 : 1));
    const { archive, status, report } = await reconciledRecording(name, file, accounting, faults);
    expect(status).toBe(4);
    const wrong = report.runs.map(({ checks }) => checks.filter(({ verdict }) => verdict !== "HOLDS"));
    expect(wrong.map((checks) => checks.map(({ number, verdict }) => [number, verdict]))).toEqual([
      ...faults.map(([, number]) => [[number, "BREAKS"]]),
      [],
    ]);
    for (const [place, [kind, number, what]] of faults.entries()) {
      const { instance: instanceId, run: runId } = report.runs[place]!;
      const run = { instanceId, runId };
      const { first } = wrong[place]![0]!;
      expect(first, kind).toHaveLength(1);
      const [told] = first;
      expect(told!.what).toContain(what);
      // where the independent reckoning of the simulator's tests finds it
      const [own] = await bookBreaks(archive, run, accounting);
      if (number === 7) expect(told!.rows).toMatchObject([{ table: "metrics" }]);
      else if (number < 6) {
        const points = await rowsOf(archive, run, "equity");
        const point = points.find(({ ts_event }) => ts_event === own!.at.split(" ")[0])!;
        expect(told!.rows.at(-1), kind).toEqual({ table: "equity", seq: point.seq });
      } else {
        const { table, seq } = told!.rows.at(-1)!;
        const rows = await rowsOf(archive, run, table as "orders");
        const row = rows.find((one) => one.seq === seq)!;
        expect(own!.at, kind).toContain(row.client_order_id);
      }
    }
  },
);
