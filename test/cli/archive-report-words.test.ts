import { expect, test } from "vitest";
import type { Manifest } from "../../src/archive/manifest/manifest.ts";
import type { RunReport } from "../../src/cli/archive/archive-report.ts";
import { reportText } from "../../src/cli/archive/archive-report-text.ts";
import { ArchiveTotals } from "../../src/cli/archive/archive-totals.ts";
import { RunvaultError } from "../../src/model/error.ts";

const form = { paint: (text: string) => text, columns: null, withTables: false, nameColumns: 0 };
const manifest = { state: "COMPLETE", generation: 2, tables: {} } as Manifest;

function report(
  outcome: Partial<NonNullable<RunReport["outcome"]>> | null,
  more: Partial<RunReport> = {},
): RunReport {
  const none = { resumedSegments: 0, steps: {}, tooNarrow: [], rows: 0, bytes: 0, warnings: [] };
  return {
    ...{ instanceId: "a", runId: "r", seconds: 4, retries: 0, error: null, exit: 0 },
    ...{ setAside: {}, quarantineDir: null },
    outcome: outcome === null ? null : { manifest, changed: true, ...none, ...outcome },
    ...more,
  };
}

test("one and many are said as people say them", () => {
  const one = report({ rows: 1, bytes: 1, resumedSegments: 1 }, { retries: 1 });
  expect(reportText(one, form)).toBe(
    "a/r  COMPLETE  1 row, 1 B in 4.0 s, 1 retry; resumed: 1 segment was already here\n",
  );
  const many = report({ rows: 1200, bytes: 5000, resumedSegments: 13 }, { retries: 2 });
  expect(reportText(many, form)).toBe(
    "a/r  COMPLETE  1,200 rows, 5.0 kB in 4.0 s, 2 retries; resumed: 13 segments were already here\n",
  );
  const totals = new ArchiveTotals();
  totals.add(one);
  expect(totals.text(4)).toBe("1 run: 1 fetched; 1 row, 1 B fetched in 4.0 s\n");
});

test("a job that fetched nothing has no rate", () => {
  const whole = { ...form, withTables: true };
  expect(reportText(report({ changed: false }), whole)).toMatch(
    /^a\/r {2}COMPLETE {2}generation 2\n {2}up to date\n/,
  );
  expect(reportText(report({ rows: 0 }), whole)).toContain("  no rows fetched in 4.0 s\n");
  const certificate = { rows: 1895, quarantined: 0, gatewayRows: null, proof: "counted" };
  const table = {
    ...{ state: "COMPLETE", proven: { state: "COMPLETE", certificate, drift: [] } },
    attempt: { outcome: "ok", holding: null, notes: [], error: null },
  };
  const held = { ...manifest, tables: { fills: table } } as unknown as Manifest;
  expect(reportText(report({ manifest: held, rows: 0, resumedSegments: 3 }), form)).toBe(
    "a/r  COMPLETE  1,895 rows, all fetched before\n",
  );
  expect(reportText(report({ rows: 8, bytes: 9 }), whole)).toContain("  8 rows, 9 B in 4.0 s (2 rows/s)\n");
  expect(reportText(report({ rows: 8, bytes: 9 }, { seconds: 0 }), whole)).not.toContain("rows/s");
});

test("rows that were fetched more than once are told as such", () => {
  const certificate = { rows: 5, quarantined: 0, gatewayRows: null, proof: "counted" };
  const bars = {
    ...{ state: "COMPLETE", proven: { state: "COMPLETE", certificate, drift: [] } },
    attempt: { outcome: "ok", holding: null, notes: [], error: null },
  };
  const here = { ...manifest, tables: { bars } } as unknown as Manifest;
  expect(reportText(report({ rows: 8, bytes: 9, manifest: here }), form)).toContain(
    "  8 rows fetched, some of them again, 9 B in 4.0 s\n",
  );
  expect(reportText(report({ rows: 5, bytes: 9, manifest: here }), form)).toContain(
    "  5 rows, 9 B in 4.0 s\n",
  );
});

test("a warning is told below its run's line, and what is from outside is escaped", () => {
  const warned = report({ changed: false, warnings: ["the document \u001b[31m cannot be had"] });
  expect(reportText(warned, { ...form, nameColumns: 8 })).toBe(
    "a/r       COMPLETE  up to date\n  warning: the document \\u001b[31m cannot be had\n",
  );
});

test("each way a run ends is a class of its own", () => {
  const failed = (code: "locked" | "incomplete" | "interrupted") =>
    report(null, { error: new RunvaultError(code, "why"), exit: 4 });
  const wrong = (state: Manifest["state"]) => report({ manifest: { ...manifest, state } }, { exit: 4 });
  const totals = new ArchiveTotals();
  for (const one of [
    ...[
      report({ changed: false }),
      report({}),
      failed("locked"),
      failed("incomplete"),
      failed("interrupted"),
    ],
    ...[wrong("QUARANTINED"), wrong("UNVERIFIED"), wrong("INCOMPLETE"), wrong("COMPLETE")],
  ]) {
    totals.add(one);
  }
  totals.addNotTried(1001);
  expect(totals.text(0)).toBe(
    "1,010 runs: 1 up to date, 1 fetched, 1 quarantined, 1 unverified, 2 incomplete, 1 not proven, 1 failed, 1 stopped, 1,001 not tried; took 0.1 s\n",
  );
  expect(reportText(failed("incomplete"), form)).toBe("a/r  INCOMPLETE: why\n");
  expect(reportText(failed("locked"), form)).toBe("a/r  failed: locked\n");
  expect(reportText(failed("interrupted"), form)).toBe("a/r  stopped\n");
});
