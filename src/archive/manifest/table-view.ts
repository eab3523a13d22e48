import type { Failure, Holding, Segment, TableManifest, TableState } from "./manifest.ts";

/** A view of a table: its proven part, or the state after its latest attempt. */
export interface TableView extends Holding {
  readonly state: TableState;
  readonly grain: TableManifest["grain"];
  readonly error: Failure | null;
}

/** The part of a table that readers show; undefined if nothing is proven. */
export function provenView(table: TableManifest | undefined): TableView | undefined {
  if (table === undefined || table.proven === null) return undefined;
  return { ...table.proven, grain: table.grain, error: null };
}

/**
 * All rows of a table that are here: those of its latest attempt or kept beside the proven ones, and the proven ones if
 * not among them; undefined if it was never archived.
 */
export function latestView(table: TableManifest): TableView;
export function latestView(table: TableManifest | undefined): TableView | undefined;
export function latestView(table: TableManifest | undefined): TableView | undefined {
  if (table === undefined) return undefined;
  const { grain, proven, attempt } = table;
  const { outcome, holding, error } = attempt;
  const state = outcome === "ok" && holding !== null ? "UNVERIFIED" : table.state;
  const rows =
    holding === null ? proven : proven === null ? holding : together(proven, holding, outcome === "ok");
  return { ...(rows ?? nothing), state, grain, error };
}

/**
 * The proven part combined with rows held beside it. If their windows in a bucket do not overlap, the bucket has the
 * files of both; otherwise the held part has all rows.
 */
function together(proven: Holding, holding: Holding, isOk: boolean): Holding {
  const held = Map.groupBy(holding.segments, ({ bucket }) => bucket);
  const own = Map.groupBy(proven.segments, ({ bucket }) => bucket);
  const isBeside = ({ bucket }: { readonly bucket: string }) =>
    lieApart(own.get(bucket) ?? [], held.get(bucket) ?? []);
  const beside = proven.segments.filter(isBeside);
  const base = isOk ? proven : holding;
  if (beside.every(({ rows }) => rows === 0) || base.certificate === null) return holding;
  const segments = [...beside, ...holding.segments].sort((a, b) => order(a.from, b.from));
  const parquet = [...proven.parquet.filter(isBeside), ...holding.parquet];
  parquet.sort((a, b) => order(a.first.ts, b.first.ts));
  const files = new Set(beside.map(({ file }) => file));
  const aside = proven.quarantine.filter(({ segment }) => files.has(segment));
  const quarantine = [...aside, ...holding.quarantine];
  const sum = (counted: readonly { readonly rows: number }[]) =>
    counted.reduce((total, { rows }) => total + rows, 0);
  const certificate = {
    ...base.certificate,
    ...{ rows: sum(segments), quarantined: sum(quarantine), rowHash: null },
    ...{ first: parquet[0]?.first ?? null, last: parquet.at(-1)?.last ?? null },
  };
  const drift = [...new Set([...proven.drift, ...holding.drift])];
  return { ...base, certificate, segments, parquet, quarantine, drift };
}

/** Whether no windows of the two lists of segments overlap, ignoring segments without rows. */
export function lieApart(one: readonly Segment[], other: readonly Segment[]): boolean {
  const filled = other.filter(({ rows }) => rows > 0);
  const isIn = ({ from, to }: Segment) =>
    filled.some((held) => BigInt(from) < BigInt(held.to) && BigInt(held.from) < BigInt(to));
  return !one.some((segment) => segment.rows > 0 && isIn(segment));
}

function order(one: string, other: string): number {
  return Number(BigInt(one) > BigInt(other)) - Number(BigInt(one) < BigInt(other));
}

const nothing: Holding = {
  certificate: null,
  exactTypes: {},
  segments: [],
  parquet: [],
  quarantine: [],
  drift: [],
  storageVersion: null,
};

/**
 * The view for reports after an attempt: the proven part, if it succeeded. After an attempt without rows, the earlier
 * rows, which it did not prove.
 */
export function toldView(table: TableManifest): TableView {
  const { proven, attempt } = table;
  if (attempt.outcome === "ok") return provenView(table) ?? latestView(table);
  const latest = latestView(table);
  const before = attempt.holding === null ? (proven?.certificate ?? null) : null;
  if (before === null) return latest;
  return { ...latest, certificate: { ...before, proof: "none", gatewayRows: null, restsOn: [] } };
}

/**
 * The part of a table that readers show: the proven one; with `allowIncomplete` everything here. This is the only place
 * that decides it.
 */
export function shownView(table: TableManifest | undefined, allowIncomplete: boolean): TableView | undefined {
  if (!allowIncomplete) return provenView(table);
  const view = latestView(table);
  const isBeside = table?.attempt.outcome === "ok" && table.attempt.holding !== null;
  if (!isBeside || view?.certificate == null) return view;
  return { ...view, certificate: { ...view.certificate, proof: "none" } };
}

/** True for an existing table, with or without rows; false if nothing is proven, or the table does not exist. */
export function isPresent(view: TableView | undefined): view is TableView {
  return view !== undefined && view.state !== "ABSENT";
}

/** Everything in a table's manifest: the proven part, and a later attempt's rows. */
export function holdingsOf({ proven, attempt }: TableManifest): Holding[] {
  return [proven, attempt.holding].filter((holding) => holding !== null);
}
