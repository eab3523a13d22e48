import { countText } from "../../../model/text/plural.ts";
import { floorDivide, formatTime, type Nanoseconds } from "../../../model/time.ts";
import { boundText, stepOf } from "../../rest/written-bounds.ts";
import { refusalText } from "./asker.ts";
import { unitText } from "./column-look.ts";
import { checkFineRows, checkStep } from "./heed-step.ts";
import { missingFrom, type SampleRow, settled } from "./sample.ts";
import { askRows, isGiven, type Page, type TableProbe, tellHeed, tellUnchecked } from "./table-rows.ts";

/** A bound as sent, and the instants that it may mean: with a coarse unit there are many. */
interface Bound {
  readonly text: string;
  readonly low: Nanoseconds;
  readonly high: Nanoseconds;
}

/** The result of an answer to a bound. */
type Outcome = "ok" | "leaks" | "nothing" | "edge" | "loses" | "refused";

/** Requests rows from a time, to a time, and between two. */
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
      "the profile names no bounds: the table comes whole each time",
    );
  }
  const times = [...new Set(sample.flatMap(({ ts }) => (ts === undefined ? [] : [ts])))].sort((a, b) =>
    a < b ? -1 : 1,
  );
  if (times.length < 2) {
    return tellUnchecked(
      probe,
      "from and to",
      times.length === 0 ? "no row seen has a time" : "all rows seen have the same time",
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
  // in rows without an order, a row within bounds need not be among the first
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

/** A bound at a row's time, if possible one that the unit can express exactly. */
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
  /** Whether rows came, none of them from the requested side. */
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
  if (!isGiven(page)) return { outcome: "refused", told: `${asked} is answered with ${statusOf(page)}` };
  const isOutside = ({ ts }: SampleRow) => ts !== undefined && (side === "from" ? ts < low : ts > high);
  const isInside = ({ ts }: SampleRow) => ts !== undefined && (side === "from" ? ts > high : ts < low);
  const leaked = page.rows.filter(isOutside);
  if (leaked.length > 0) {
    const where = side === "from" ? "before" : "after";
    return {
      outcome: "leaks",
      isOpposite: !page.rows.some(isInside),
      told: `${asked} brought ${countText(leaked.length, "row")} from ${where} it, such as one of ${formatTime(leaked[0]!.ts!)}`,
    };
  }
  // without an order, the first rows of two answers may differ
  const mayJudge = route.order !== "none" || isWhole;
  const within = (isWhole ? sample : settled(sample)).filter(isInside);
  if (page.rows.length === 0 && within.length > 0) {
    return {
      outcome: "nothing",
      told: `${asked} brought no row, and ${within.length} seen before lie there`,
    };
  }
  const lost = mayJudge ? missingFrom(within, page.rows) : [];
  if (lost.length > 0) {
    return {
      outcome: "loses",
      told: `${asked} lacks ${countText(lost.length, "row")} seen before, such as one of ${formatTime(lost[0]!.ts!)}`,
    };
  }
  const edge = sample.filter(({ ts }) => ts === low);
  const isInclusive = route.times[side] === "inclusive";
  if (edge.length === 0 || !mayJudge) {
    return {
      outcome: "ok",
      told: `${asked} brought ${countText(page.rows.length, "row")}, none from outside${
        edge.length === 0
          ? `; no row seen shows whether one of exactly that time is ${route.times[side]}`
          : ""
      }`,
    };
  }
  const absent = missingFrom(edge, page.rows).length;
  const isIn = absent === 0;
  if (absent > 0 && absent < edge.length) {
    return { outcome: "loses", told: `${asked} brought only some of the rows of exactly that time` };
  }
  return isIn === isInclusive
    ? { outcome: "ok", told: `${asked} ${isIn ? "has" : "leaves out"} the rows of exactly that time` }
    : { outcome: "edge", told: `${asked} ${isIn ? "has" : "leaves out"} the rows of exactly that time` };
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
  // a number that is too small lies before all rows, one that is too large after them
  const isSmall = from?.outcome === "leaks" && to?.outcome === "nothing";
  const isLarge = from?.outcome === "nothing" && to?.outcome === "leaks";
  if (isSmall || isLarge) {
    tellHeed(
      probe,
      "from and to",
      `${from.told}; ${to.told}: the gateway takes ${bound.text} for another time`,
      {
        kind: "bounds_unit",
        at: "times.unit",
        hint: `Bounds are sent in ${unit}, and the gateway reads a ${isSmall ? "finer" : "coarser"} unit: set \`times: { unit: … }\`.`,
      },
    );
    return;
  }
  if (from?.isOpposite === true && to?.isOpposite === true) {
    const { parameters } = route;
    tellHeed(probe, "from and to", `${from.told}; ${to.told}: each is taken for the other`, {
      kind: "bounds",
      at: "parameters.from",
      hint: `Swap the two: \`from: ${parameters.to}\` and \`to: ${parameters.from}\`.`,
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
        hint: `The gateway seems to ignore \`${name}\`, or to read it in another unit than ${unit}: look up the parameter's name and unit.`,
      },
      nothing: {
        kind: "bounds_unit" as const,
        at: "times.unit",
        hint: `The gateway may read \`${name}\` in another unit than ${unit}: look it up, and set \`times: { unit: … }\`.`,
      },
      edge: {
        kind: "bounds" as const,
        at: `times.${side}`,
        hint: `Write \`times: { ${side}: ${other} }\`.`,
      },
      loses: {
        kind: "bounds" as const,
        at: `parameters.${side}`,
        hint: "The same rows should come by another bound; if the run is still going on, check a finished one.",
      },
      refused: {
        kind: "not_heeded" as const,
        at: `parameters.${side}`,
        hint: `The gateway does not like this bound: look up its unit and form (\`times: { unit: … }\`${route.times.unit === "rfc3339" && route.times.step === undefined ? "; `unit: { rfc3339: ms }` sends three decimals" : ""}).`,
      },
    };
    tellHeed(probe, side, one.told, wrongs[one.outcome]);
  }
}

/** A window requested with the profile's largest limit, few rows whatever the limit. */
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
  const what = "a window";
  const limit = route.largestLimit === undefined ? "" : ` with the largest limit, ${route.largestLimit},`;
  if (!isGiven(page)) {
    return tellHeed(probe, what, `from and to together${limit} are answered with ${statusOf(page)}`, {
      kind: "not_heeded",
      at: route.largestLimit === undefined ? "parameters" : "largest_limit",
      hint: "The gateway has to take both bounds at once, and the largest limit that the profile names.",
    });
  }
  const outside = page.rows.filter(({ ts }) => ts !== undefined && (ts < begin.low || ts > end.high));
  if (outside.length > 0) {
    return tellHeed(
      probe,
      what,
      `from and to together brought ${countText(outside.length, "row")} from outside`,
      {
        kind: "not_heeded",
        at: "parameters",
        hint: "The gateway heeds one of the bounds where both are given: look up how it takes both.",
      },
    );
  }
  const inside = sample.filter(({ ts }) => ts !== undefined && ts > begin.high && ts < end.low);
  const lost = route.order !== "none" || isWhole ? missingFrom(inside, page.rows).length : 0;
  if (lost > 0) {
    return tellHeed(probe, what, `from and to together${limit} lack ${countText(lost, "row")} seen before`, {
      kind: "bounds",
      at: "parameters",
      hint: "The same rows should come by other bounds; if the run is still going on, check a finished one.",
    });
  }
  tellHeed(
    probe,
    what,
    `from and to together${limit} brought ${countText(page.rows.length, "row")}, none from outside`,
  );
}
