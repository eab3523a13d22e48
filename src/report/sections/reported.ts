import type { MeasureOptions } from "../../analytics/metrics/measure-runs.ts";
import type {
  MetricsDocument,
  MetricsRun,
  MetricsSection,
} from "../../analytics/metrics/metrics-document.ts";
import type { ReconciledRun } from "../../analytics/reconcile/reconcile-report.ts";
import type { PreviousRun } from "../read/previous-run.ts";
import type { SeriesKey } from "../read/read-curves.ts";
import type { RunRead } from "../read/read-run.ts";

/** All data about one run. */
export interface ReportedRun {
  /** INSTANCE/RUN. */
  readonly name: string;
  /** The heading of its columns: `[1]`, or its name if it is the only one. */
  readonly label: string;
  /** From 1: its colour is `--run-N`. */
  readonly number: number;
  readonly told: MetricsRun;
  readonly read: RunRead;
  /** Or why its books were not checked. */
  readonly reconciled: ReconciledRun | string;
}

/** All data of a page. */
export interface Reported {
  readonly runs: readonly ReportedRun[];
  /** Only for a single run; null if it has none. */
  readonly previous: PreviousRun | null;
  readonly options: MeasureOptions;
  /** The same in the form of the metrics document. */
  readonly toldOptions: MetricsDocument["options"];
}

export type Group = MetricsSection["groups"][number];

/** The contents of one pair of axes: the same series of each run. */
export interface Panel {
  /** Empty if it is the only one. */
  readonly name: string;
  readonly currency: string;
  readonly members: readonly { readonly run: ReportedRun; readonly key: SeriesKey }[];
}

/**
 * Groups the series of the runs for common axes. If each run has one, all in one currency, they are compared whatever
 * their accounts are called; otherwise series with the same account, portfolio and currency are.
 */
export function panelsOf(runs: readonly ReportedRun[]): readonly Panel[] {
  const keys = runs.flatMap((run) => seriesOf(run).map((key) => ({ run, key })));
  const currencies = new Set(keys.map(({ key }) => key.currency));
  if (currencies.size <= 1 && runs.every((run) => seriesOf(run).length <= 1)) {
    return keys.length === 0 ? [] : [{ name: "", currency: keys[0]!.key.currency, members: keys }];
  }
  const byKey = Map.groupBy(keys, ({ key }) => keyText(key));
  return [...byKey].map(([name, members]) => ({ name, currency: members[0]!.key.currency, members }));
}

/** Sections with figures per series; factors have no account. */
const ofSeries = ["performance", "trades", "execution"];

/** A run's series: those with equity, and those with only trades or orders. */
function seriesOf({ told }: ReportedRun): readonly SeriesKey[] {
  const groups = told.sections
    .filter(({ name }) => ofSeries.includes(name))
    .flatMap(({ groups: own }) => own);
  const keys = groups.map(({ account, portfolio, currency }) => ({ account, portfolio, currency }));
  return [...new Map(keys.map((key) => [keyText(key), key])).values()];
}

/** `account / portfolio, USD`. */
export function keyText({ account, portfolio, currency }: SeriesKey): string {
  return [[account, portfolio].filter(Boolean).join(" / "), currency].filter(Boolean).join(", ");
}

export function isSameKey(a: SeriesKey, b: SeriesKey): boolean {
  return a.account === b.account && a.portfolio === b.portfolio && a.currency === b.currency;
}

/** A section of a run's figures; undefined if it was not requested. */
export function sectionOf(told: MetricsRun, name: string): MetricsSection | undefined {
  return told.sections.find((section) => section.name === name);
}

/** A section's figures for a series. */
export function groupOf(told: MetricsRun, name: string, key: SeriesKey): Group | undefined {
  return sectionOf(told, name)?.groups.find((group) => isSameKey(group, key));
}
