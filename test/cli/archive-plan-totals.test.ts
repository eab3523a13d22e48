import { describe, expect, test } from "vitest";
import { PlanTotals } from "../../src/cli/archive/archive-plan-totals.ts";
import { hasRoom } from "../../src/extract/fetch/disk-need.ts";
import type { RunPlan } from "../../src/extract/plan/plan-run.ts";

const room = { freeBytes: 1_000, reserveBytes: 100 };
const needing = (diskBytes: number | null): RunPlan => ({
  ...{ instanceId: "alpha", runId: "1", status: "FINISHED", upToDate: false, horizon: 1n, ...room },
  tables: [{ table: "fills", absent: false, rows: 1, textBytes: 5, diskBytes, slices: 1, error: null }],
});

function totalsOf(...plans: RunPlan[]): PlanTotals {
  const totals = new PlanTotals();
  for (const plan of plans) totals.add(plan);
  return totals;
}

describe("a plan fits", () => {
  test.each([0, 899, 900, 901, 1_000, 1_001])("by what a job goes by: %i bytes", (needed) => {
    const job = hasRoom({ free: room.freeBytes, reserve: room.reserveBytes }, needed);
    expect(totalsOf(needing(needed)).fits).toBe(job);
    expect(job).toBe(needed <= 900);
  });

  test("where all runs do together, on the disk that has least room", () => {
    expect(totalsOf(needing(450), needing(450)).space()).toEqual({ neededBytes: 900, ...room, fits: true });
    expect(totalsOf(needing(450), needing(451)).fits).toBe(false);
    const fuller = { ...needing(450), freeBytes: 1_050, reserveBytes: 200 };
    expect(totalsOf(needing(450), fuller).space()).toMatchObject({ freeBytes: 1_050, fits: false });
  });

  test("or nobody knows where a run could not be planned, unless the others alone need too much", () => {
    for (const add of ["addFailed", "addNotListed", "addNotTried"] as const) {
      const totals = totalsOf(needing(450));
      totals[add](1);
      expect(totals.space()).toEqual({ neededBytes: 450, ...room, fits: null });
      expect(totals.text()).toContain("about 450 B of disk needed by what could be planned, 1.0 kB free;");
      totals.add(needing(451));
      expect(totals.fits).toBe(false);
    }
    expect(totalsOf(needing(450)).text()).toContain("about 450 B of disk needed, 1.0 kB free;");
  });

  test("or nobody knows where the gateway has no storage facts", () => {
    expect(totalsOf(needing(450), needing(null)).space()).toEqual({ neededBytes: null, ...room, fits: null });
    expect(new PlanTotals().fits).toBe(null);
  });
});
