import { countUnits } from "../../../model/profile/row-map.ts";
import { formatTime, type Nanoseconds } from "../../../model/time.ts";
import { boundText, nsOfUnit, stepOf } from "../../rest/written-bounds.ts";
import { missingFrom, type SampleRow } from "./sample.ts";
import { askRows, isGiven, type Page, type TableProbe, tellHeed } from "./table-rows.ts";

/**
 * Many gateways compare more coarsely than bounds are sent: they read three of RFC 3339's nine decimals, or use whole
 * milliseconds for bounds and rows alike. Then a bound just after a row counts as the row's time, and a request after
 * the last row always returns that row again.
 */
export async function checkStep(
  probe: TableProbe,
  low: Nanoseconds,
  sample: readonly SampleRow[],
): Promise<void> {
  const { times, parameters } = probe.route;
  const step = stepOf(times);
  const edge = sample.filter(({ ts }) => ts === low);
  const coarser = countUnits.filter(
    (unit) => nsOfUnit[unit] > step && low % nsOfUnit[unit] === 0n && unit !== "us",
  )[0];
  const isText = times.unit === "rfc3339";
  // an exclusive `from` and an inclusive `to` return the same rows, truncated or not
  const side = times.from === "inclusive" && parameters.from !== undefined ? "from" : "to";
  const isCut = (page: Page) => (missingFrom(edge, page.rows).length === 0) === (side === "from");
  if (edge.length === 0 || (isText ? coarser === undefined : step >= nsOfUnit.ms)) return;
  if (parameters[side] === undefined || (side === "to" && times.to === "inclusive")) return;
  const text = boundText(low + step, times);
  const page = await askRows(probe, { [side]: text });
  if (!isGiven(page) || !isCut(page)) return;
  const told = `${parameters[side]}=${text} ${side === "from" ? "includes" : "excludes"} the rows of ${boundText(low, times)}`;
  if (!isText) return tellCoarse(probe, side, told);
  tellHeed(probe, `precision of ${side}`, `${told}: the gateway ignores the last decimals`, {
    kind: "bounds_unit",
    at: "times.unit",
    hint: `Write \`times: { unit: { rfc3339: ${coarser} } }\`: bounds then have only the decimals that the gateway reads.`,
  });
}

/**
 * If rows have finer times than bounds, an inclusive `to` compared in the bounds' unit includes rows after it, and an
 * exclusive `from` leaves rows out.
 */
export async function checkFineRows(probe: TableProbe, sample: readonly SampleRow[]): Promise<void> {
  const { times, parameters } = probe.route;
  const fine = sample.find(({ ts }) => ts !== undefined && ts % stepOf(times) !== 0n);
  const side =
    times.to === "inclusive" && parameters.to !== undefined
      ? "to"
      : times.from === "exclusive" && parameters.from !== undefined
        ? "from"
        : undefined;
  if (fine?.ts === undefined || side === undefined) return;
  const text = boundText(fine.ts, times);
  const page = await askRows(probe, { [side]: text });
  const isIn = missingFrom([fine], page.rows).length === 0;
  if (!isGiven(page) || isIn !== (side === "to")) return;
  const has = isIn ? "includes" : "excludes";
  tellCoarse(probe, side, `${parameters[side]}=${text} ${has} the later row of ${formatTime(fine.ts)}`);
}

function tellCoarse(probe: TableProbe, side: "from" | "to", told: string): void {
  tellHeed(probe, `row times and ${side}`, `${told}: the gateway compares times in a coarser unit`, {
    kind: "bounds",
    at: `times.${side}`,
    hint: "Ask the gateway's operator to compare bounds with a row's full time; no profile setting can correct this.",
  });
}
