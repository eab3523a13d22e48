import { describe, expect, it } from "vitest";
import {
  type AttemptMark,
  type ProvenMark,
  provenStanding,
  type RunSituation,
} from "../../src/extract/proof/proven-standing.ts";

const provens: ProvenMark[] = [
  { state: "none" },
  { state: "ABSENT" },
  { state: "OPEN", horizon: 10n },
  { state: "COMPLETE" },
];
const attempts: (AttemptMark | null)[] = [
  null,
  { outcome: "ok", proves: { state: "ABSENT" } },
  { outcome: "ok", proves: { state: "OPEN", horizon: 5n } },
  { outcome: "ok", proves: { state: "OPEN", horizon: 20n } },
  { outcome: "ok", proves: { state: "COMPLETE" } },
  { outcome: "INCOMPLETE", exit: 3 },
  { outcome: "UNVERIFIED", exit: 4 },
  { outcome: "QUARANTINED", exit: 4 },
];
const situations: RunSituation[] = ["growing", "final", "gone", "reset"];

/** Every input there is, with what it leads to. */
const all = provens.flatMap((proven) =>
  attempts.flatMap((attempt) =>
    situations.flatMap((run) =>
      [false, true].map((isClosed) => {
        const standing = provenStanding(proven, attempt, run, isClosed);
        const after = standing.replaces && attempt?.outcome === "ok" ? attempt.proves : proven;
        return { proven, attempt, run, isClosed, standing, after };
      }),
    ),
  ),
);

describe("what becomes of what is proven, over every input there is,", () => {
  it("is never nothing where something was proven", () => {
    for (const { proven, after } of all) if (proven.state !== "none") expect(after.state).not.toBe("none");
  });

  it("is never more than the attempt proved", () => {
    for (const { attempt, standing } of all) if (standing.replaces) expect(attempt?.outcome).toBe("ok");
  });

  it("loses no rows that were proven: no table of rows becomes ABSENT, and no horizon goes back", () => {
    for (const { proven, after } of all) {
      const had = proven.state === "OPEN" || proven.state === "COMPLETE";
      if (had) expect(after.state).not.toBe("ABSENT");
      if (proven.state === "OPEN" && after.state === "OPEN") {
        expect(after.horizon).toBeGreaterThanOrEqual(proven.horizon);
      }
    }
  });

  it("stays as it is of a run that is gone or another one, whatever the attempt says", () => {
    for (const { run, standing } of all)
      if (run === "gone" || run === "reset") expect(standing.replaces).toBe(false);
  });

  it("is an exit of 0 only where an attempt was ok, or where what is proven is the last word on a run", () => {
    for (const { proven, attempt, run, isClosed, standing } of all) {
      if (standing.exit !== 0) continue;
      const isLast = proven.state === "COMPLETE" || proven.state === "ABSENT";
      if (run === "gone") expect(isLast || (proven.state === "OPEN" && isClosed)).toBe(true);
      else expect(attempt === null ? proven.state !== "none" : attempt.outcome === "ok").toBe(true);
      expect(run).not.toBe("reset");
    }
  });

  it("is told with a note wherever an exit of 0 leaves it behind what the source says", () => {
    for (const { attempt, standing } of all) {
      if (standing.exit === 0 && attempt !== null && !standing.replaces) expect(standing.note).not.toBe(null);
    }
  });

  it("has the exit status of the attempt's own error beside that of what is unproven", () => {
    const unreachable = { outcome: "INCOMPLETE", exit: 3 } as const;
    expect(provenStanding({ state: "COMPLETE" }, unreachable, "final").exit).toBe(3);
    expect(provenStanding({ state: "COMPLETE" }, { outcome: "UNVERIFIED", exit: 2 }, "final").exit).toBe(4);
  });
});

it("a finished run that goes on again is OPEN again", () => {
  const goesOn = { outcome: "ok", proves: { state: "OPEN", horizon: 20n } } as const;
  expect(provenStanding({ state: "COMPLETE" }, goesOn, "growing").replaces).toBe(true);
});
