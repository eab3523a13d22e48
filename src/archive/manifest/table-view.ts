import type { Failure, Holding, TableManifest, TableState } from "./manifest.ts";

/** A table as it is seen: what is proven of it, or what its latest attempt made of it. */
export interface TableView extends Holding {
  readonly state: TableState;
  readonly grain: TableManifest["grain"];
  readonly error: Failure | null;
}

/** What readers show of a table; undefined where nothing is proven. */
export function provenView(table: TableManifest | undefined): TableView | undefined {
  if (table === undefined || table.proven === null) return undefined;
  return { ...table.proven, grain: table.grain, error: null };
}

/**
 * What the latest attempt made of a table: as it is proven, if that was ok and nothing unproven is kept beside it;
 * undefined where it never was archived.
 */
export function latestView(table: TableManifest): TableView;
export function latestView(table: TableManifest | undefined): TableView | undefined;
export function latestView(table: TableManifest | undefined): TableView | undefined {
  if (table === undefined) return undefined;
  const { grain, proven, attempt } = table;
  const state = attempt.outcome === "ok" && attempt.holding !== null ? "UNVERIFIED" : table.state;
  return { ...(attempt.holding ?? proven ?? nothing), state, grain, error: attempt.error };
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
 * What people are told of a table once an attempt is over: as it is proven, if that was ok. Of one that brought nothing,
 * the rows of before, which this attempt did not prove.
 */
export function toldView(table: TableManifest): TableView {
  const { proven, attempt } = table;
  if (attempt.outcome === "ok") return provenView(table) ?? latestView(table);
  const latest = latestView(table);
  const before = attempt.holding === null ? (proven?.certificate ?? null) : null;
  if (before === null) return latest;
  return { ...latest, certificate: { ...before, proof: "none", gatewayRows: null, restsOn: [] } };
}

/** What readers show of a table; with `allowIncomplete` what its latest attempt made of it. */
export function shownView(table: TableManifest | undefined, allowIncomplete: boolean): TableView | undefined {
  return allowIncomplete ? latestView(table) : provenView(table);
}

/** True for a table that there is, with rows or none; false where nothing is proven, or that there is no such table. */
export function isPresent(view: TableView | undefined): view is TableView {
  return view !== undefined && view.state !== "ABSENT";
}

/** Everything that a table's manifest names: what is proven, and what a later attempt brought beside it. */
export function holdingsOf({ proven, attempt }: TableManifest): Holding[] {
  return [proven, attempt.holding].filter((holding) => holding !== null);
}
