import { countText } from "../../../model/text/plural.ts";
import { floorDivide, formatTime, type Nanoseconds } from "../../../model/time.ts";
import { boundText, stepOf } from "../../rest/written-bounds.ts";
import { refusalText } from "./asker.ts";
import { unitText } from "./column-look.ts";
import { checkFineRows, checkStep } from "./heed-step.ts";
import { missingFrom, type SampleRow, settled } from "./sample.ts";
import { askRows, isGiven, type Page, type TableProbe, tellHeed, tellUnchecked } from "./table-rows.ts";

/** A bound as sent, and the first and last instant that it covers: with a coarse unit they differ. */
interface Bound {
  readonly text: string;
  readonly low: Nanoseconds;
  readonly high: Nanoseconds;
}

/** The result of an answer to a bound. */
type Outcome = "ok" | "leaks" | "nothing" | "edge" | "loses" | "refused";

/** Requests rows from one time, to another, and between the two. */
export async function checkBounds(
  probe: TableProbe,
  sample: readonly SampleRow[],
  isWhole: boolean,
): Promise<void> {
  const { from, to } = probe.route.parameters;
  if (from === undefined && to === undefined) {
    return tellUnchecked(
      probe,
      "from and to",
      "the profile names no bounds: the whole table is fetched each time",
    );
  }
  const times = [...new Set(sample.flatMap(({ ts }) => (ts === undefined ? [] : [ts])))].sort((a, b) =>
    a < b ? -1 : 1,
  );
  if (times.length < 2) {
    return tellUnchecked(
      probe,
      "from and to",
      times.length === 0 ? "no row has a time" : "all rows have the same time",
    );
  }
  const bound = boundNear(times, 0.5, probe);
  const outcomes: Partial<Record<"from" | "to", Told>> = {};
  for (const side of ["from", "to"] as const) {
    if (probe.route.parameters[side] === undefined) continue;
    const page = await askRows(probe, { [side]: bound.text });
    outcomes[side] = judge(probe, side, bound, sample, page, isWhole);
  }
  tellOutcomes(probe, bound, outcomes);
  // without an order, a row within the bounds need not be among the first
  const mayJudge = probe.route.order !== "none" || isWhole;
  if (mayJudge && Object.values(outcomes).every(({ outcome }) => outcome === "ok")) {
    await checkStep(probe, bound.low, sample);
    await checkFineRows(probe, sample);
  }
  if (from !== undefined && to !== undefined) {
    const end = times.length > 3 ? boundNear(times, 0.75, probe) : boundAt(times.at(-1)!, probe);
    await checkWindow(probe, sample, [boundNear(times, 0.3, probe), end], isWhole);
  }
}

/** A bound at a row's time, exact in the unit if possible. */
function boundNear(times: readonly Nanoseconds[], part: number, probe: TableProbe): Bound {
  const { route } = probe;
  const unit = stepOf(route.times);
  const middle = Math.floor(times.length * part);
  const inside = times.length > 2 ? times.slice(1, -1) : times.slice(1);
  const nearest = [...inside].sort((a, b) => distance(times, a, middle) - distance(times, b, middle));
  return boundAt(nearest.find((ns) => ns % unit === 0n) ?? nearest[0]!, probe);
}

function boundAt(time: Nanoseconds, { route }: TableProbe): Bound {
  const unit = stepOf(route.times);
  const low = floorDivide(time, unit) * unit;
  return { text: boundText(low, route.times), low, high: low + unit - 1n };
}

function distance(times: readonly Nanoseconds[], time: Nanoseconds, place: number): number {
  return Math.abs(times.indexOf(time) - place);
}

interface Told {
  readonly outcome: Outcome;
  readonly told: string;
  /** Whether all rows received are from the wrong side. */
  readonly isOpposite?: boolean;
}

function judge(
  { route }: TableProbe,
  side: "from" | "to",
  { text, low, high }: Bound,
  sample: readonly SampleRow[],
  page: Page,
  isWhole: boolean,
): Told {
  const asked = `${route.parameters[side]}=${text}`;
  if (!isGiven(page)) return { outcome: "refused", told: `${asked} failed: ${statusOf(page)}` };
  const isOutside = ({ ts }: SampleRow) => ts !== undefined && (side === "from" ? ts < low : ts > high);
  const isInside = ({ ts }: SampleRow) => ts !== undefined && (side === "from" ? ts > high : ts < low);
  const leaked = page.rows.filter(isOutside);
  if (leaked.length > 0) {
    const where = side === "from" ? "before" : "after";
    return {
      outcome: "leaks",
      isOpposite: !page.rows.some(isInside),
      told: `${asked} returned ${countText(leaked.length, "row")} from ${where} that time, for example from ${formatTime(leaked[0]!.ts!)}`,
    };
  }
  // without an order, the first rows of two answers may differ
  const mayJudge = route.order !== "none" || isWhole;
  const within = (isWhole ? sample : settled(sample)).filter(isInside);
  if (page.rows.length === 0 && within.length > 0) {
    return {
      outcome: "nothing",
      told: `${asked} returned no rows, but ${within.length} of the first answer lie there`,
    };
  }
  const lost = mayJudge ? missingFrom(within, page.rows) : [];
  if (lost.length > 0) {
    return {
      outcome: "loses",
      told: `${asked} lacks ${countText(lost.length, "row")} of the first answer, for example from ${formatTime(lost[0]!.ts!)}`,
    };
  }
  const edge = sample.filter(({ ts }) => ts === low);
  const isInclusive = route.times[side] === "inclusive";
  if (edge.length === 0 || !mayJudge) {
    return {
      outcome: "ok",
      told: `${asked} returned ${countText(page.rows.length, "row")}, none outside${
        edge.length === 0 ? `; no row shows whether the bound is ${route.times[side]}` : ""
      }`,
    };
  }
  const absent = missingFrom(edge, page.rows).length;
  const isIn = absent === 0;
  if (absent > 0 && absent < edge.length) {
    return { outcome: "loses", told: `${asked} returned only some of the rows with exactly that time` };
  }
  return isIn === isInclusive
    ? { outcome: "ok", told: `${asked} ${isIn ? "includes" : "excludes"} rows with exactly that time` }
    : { outcome: "edge", told: `${asked} ${isIn ? "includes" : "excludes"} rows with exactly that time` };
}

function statusOf({ told, fault }: Page): string {
  return fault === undefined ? refusalText(told) : fault.message;
}

function tellOutcomes(
  probe: TableProbe,
  bound: Bound,
  { from, to }: Partial<Record<"from" | "to", Told>>,
): void {
  const { route } = probe;
  const unit = unitText(route.times.unit);
  // read in a finer unit, the number lies before all rows; in a coarser one, after them
  const isSmall = from?.outcome === "leaks" && to?.outcome === "nothing";
  const isLarge = from?.outcome === "nothing" && to?.outcome === "leaks";
  if (isSmall || isLarge) {
    tellHeed(
      probe,
      "from and to",
      `${from.told}; ${to.told}: the gateway reads ${bound.text} as another time`,
      {
        kind: "bounds_unit",
        at: "times.unit",
        hint: `Bounds are sent in ${unit}, but the gateway expects a ${isSmall ? "finer" : "coarser"} unit: set \`times: { unit: … }\`.`,
      },
    );
    return;
  }
  if (from?.isOpposite === true && to?.isOpposite === true) {
    const { parameters } = route;
    tellHeed(probe, "from and to", `${from.told}; ${to.told}: the two are swapped`, {
      kind: "bounds",
      at: "parameters.from",
      hint: `Swap them: \`from: ${parameters.to}\` and \`to: ${parameters.from}\`.`,
    });
    return;
  }
  for (const [side, one] of [
    ["from", from],
    ["to", to],
  ] as const) {
    if (one === undefined) continue;
    const name = route.parameters[side];
    const other = route.times[side] === "inclusive" ? "exclusive" : "inclusive";
    const wrongs = {
      ok: undefined,
      leaks: {
        kind: "not_heeded" as const,
        at: `parameters.${side}`,
        hint: `The gateway seems to ignore \`${name}\`, or to expect a unit other than ${unit}: look up the parameter's name and unit.`,
      },
      nothing: {
        kind: "bounds_unit" as const,
        at: "times.unit",
        hint: `The gateway may expect \`${name}\` in a unit other than ${unit}: look it up, and set \`times: { unit: … }\`.`,
      },
      edge: {
        kind: "bounds" as const,
        at: `times.${side}`,
        hint: `Write \`times: { ${side}: ${other} }\`.`,
      },
      loses: {
        kind: "bounds" as const,
        at: `parameters.${side}`,
        hint: "The same rows should come with any bounds around them; if the run is still going on, check a finished one.",
      },
      refused: {
        kind: "not_heeded" as const,
        at: `parameters.${side}`,
        hint: `The gateway rejected this bound: look up its unit and format (\`times: { unit: … }\`${route.times.unit === "rfc3339" && route.times.step === undefined ? "; `unit: { rfc3339: ms }` sends three decimals" : ""}).`,
      },
    };
    tellHeed(probe, side, one.told, wrongs[one.outcome]);
  }
}

/** Requests a window with the profile's largest limit; it has few rows whatever the limit. */
async function checkWindow(
  probe: TableProbe,
  sample: readonly SampleRow[],
  [begin, end]: readonly [Bound, Bound],
  isWhole: boolean,
): Promise<void> {
  const { route } = probe;
  if (begin.low >= end.low) return;
  const page = await askRows(probe, {
    from: begin.text,
    to: end.text,
    ...(route.largestLimit === undefined ? {} : { limit: route.largestLimit }),
  });
  const what = "both bounds";
  const limit = route.largestLimit === undefined ? "" : ` with the largest limit, ${route.largestLimit},`;
  if (!isGiven(page)) {
    return tellHeed(probe, what, `from and to together${limit} failed: ${statusOf(page)}`, {
      kind: "not_heeded",
      at: route.largestLimit === undefined ? "parameters" : "largest_limit",
      hint: "The gateway must accept both bounds at once, and the profile's largest limit.",
    });
  }
  const outside = page.rows.filter(({ ts }) => ts !== undefined && (ts < begin.low || ts > end.high));
  if (outside.length > 0) {
    return tellHeed(
      probe,
      what,
      `from and to together returned ${countText(outside.length, "row")} outside`,
      {
        kind: "not_heeded",
        at: "parameters",
        hint: "The gateway obeys only one of the bounds if both are sent: look up how to send both.",
      },
    );
  }
  const inside = sample.filter(({ ts }) => ts !== undefined && ts > begin.high && ts < end.low);
  const lost = route.order !== "none" || isWhole ? missingFrom(inside, page.rows).length : 0;
  if (lost > 0) {
    return tellHeed(
      probe,
      what,
      `from and to together${limit} lack ${countText(lost, "row")} of the first answer`,
      {
        kind: "bounds",
        at: "parameters",
        hint: "The same rows should come with any bounds around them; if the run is still going on, check a finished one.",
      },
    );
  }
  tellHeed(
    probe,
    what,
    `from and to together${limit} returned ${countText(page.rows.length, "row")}, none outside`,
  );
}
