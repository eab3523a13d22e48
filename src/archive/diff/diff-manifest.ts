import { extraName, hasExtraColumn } from "../../model/profile/extra-column.ts";
import { isOtherSchema } from "../../model/profile/schema-fingerprint.ts";
import type { Manifest, TableManifest } from "../manifest/manifest.ts";
import { latestView, type TableView } from "../manifest/table-view.ts";

/** Where two manifests disagree. */
export interface Disagreement {
  /** Make the archives different. */
  readonly differences: string[];
  /** What one source could not know, or proved in another way. */
  readonly notes: string[];
}

/**
 * Compares two manifests of one run, ignoring what may differ between equal archives: generation, times, durations,
 * retries, file names and hashes, requests, the source's label. A field that one source could not know (null on one
 * side) is a note, and so is the proof.
 */
export function compareManifests(a: Manifest, b: Manifest): Disagreement {
  const found = new Comparison();
  found.differ("state", a.state, b.state);
  found.differ("run status", a.run.status, b.run.status);
  found.differ("final", a.run.final, b.run.final);
  found.unlessUnknown("started", a.run.started, b.run.started);
  found.unlessUnknown("ended", a.run.ended, b.run.ended);
  found.note("storage version", a.run.storageVersion, b.run.storageVersion);
  found.differ("horizon", a.horizon, b.horizon);
  found.note(
    "documents",
    Object.keys(a.documents).sort().join(" "),
    Object.keys(b.documents).sort().join(" "),
  );
  return found;
}

/** Compares one table in two manifests, except for its rows. */
export function compareTables(inA: TableManifest | undefined, inB: TableManifest | undefined): Disagreement {
  const found = new Comparison();
  if (inA === undefined || inB === undefined) {
    found.differ("archived", inA !== undefined, inB !== undefined);
    return found;
  }
  found.differ("proven", provenText(inA), provenText(inB));
  found.note("notes", inA.attempt.notes.join("; "), inB.attempt.notes.join("; "));
  const [a, b] = [latestView(inA), latestView(inB)];
  found.differ("state", a.state, b.state);
  found.differ("grain", a.grain, b.grain);
  found.differ("buckets", buckets(a), buckets(b));
  found.differ("exact types", sortedJson(decimals(a)), sortedJson(decimals(b)));
  found.note("the column extra", hasExtraColumn(a.exactTypes), hasExtraColumn(b.exactTypes));
  found.note("rows came through", throughText(a), throughText(b));
  found.differ("drift", [...a.drift].sort().join("; "), [...b.drift].sort().join("; "));
  found.differ("error", a.error?.code ?? null, b.error?.code ?? null);
  found.differ("rows set aside", asideRows(a), asideRows(b));
  const [left, right] = [a.certificate, b.certificate];
  if (left === null || right === null) {
    found.differ("certified", left !== null, right !== null);
    return found;
  }
  found.differ("certified rows", left.rows, right.rows);
  found.differ("certified rows set aside", left.quarantined, right.quarantined);
  found.differ("stream end", left.ended, right.ended);
  found.differ("first key", keyText(left.first), keyText(right.first));
  found.differ("last key", keyText(left.last), keyText(right.last));
  found.differ("certified until", left.until, right.until);
  found.note("proof", left.proof, right.proof);
  found.unlessUnknown("gateway's rows", left.gatewayRows, right.gatewayRows);
  const schemas = [left.schemaFingerprint, right.schemaFingerprint] as const;
  if (schemas[0] !== null && schemas[1] !== null && isOtherSchema(schemas[0], schemas[1])) {
    found.differ("schema fingerprint", ...schemas);
  } else found.note("schema fingerprint", ...schemas);
  if (left.rowHash !== null && right.rowHash !== null) {
    found.differ("certified row hash", sortedJson(left.rowHash), sortedJson(right.rowHash));
  }
  return found;
}

class Comparison implements Disagreement {
  readonly differences: string[] = [];
  readonly notes: string[] = [];

  differ(what: string, a: unknown, b: unknown): void {
    if (a !== b) this.differences.push(sentence(what, a, b));
  }

  note(what: string, a: unknown, b: unknown): void {
    if (a !== b) this.notes.push(sentence(what, a, b));
  }

  unlessUnknown(what: string, a: unknown, b: unknown): void {
    if (a === null || b === null) this.note(what, a, b);
    else this.differ(what, a, b);
  }
}

function sentence(what: string, a: unknown, b: unknown): string {
  return `${what}: ${a === null ? "unknown" : String(a)} and ${b === null ? "unknown" : String(b)}`;
}

function provenText({ proven }: TableManifest): string | null {
  if (proven === null) return null;
  const { state, certificate } = proven;
  const upTo = certificate?.until == null ? "" : ` up to ${certificate.until}`;
  return `${state}${upTo}, ${certificate?.rows ?? 0} rows`;
}

function buckets(table: TableView): string {
  const shown = table.parquet.map(
    ({ bucket, rows, first, last }) => `${bucket}=${rows} ${keyText(first)}..${keyText(last)}`,
  );
  return shown.join(", ");
}

/** The types without `extra`, which is not part of the rows. */
function decimals({ exactTypes: { [extraName]: _, ...decimals } }: TableView): Record<string, string> {
  return decimals;
}

function throughText({ through }: TableView): string {
  if (through === undefined) return "the contract";
  const { profile, fingerprint } = through;
  return `profile ${profile}${fingerprint === undefined ? "" : `, map ${fingerprint.slice(0, 12)}`}`;
}

function asideRows(table: TableView): number {
  return table.quarantine.reduce((sum, { rows }) => sum + rows, 0);
}

function keyText(key: { ts: string; seq: string } | null): string | null {
  return key === null ? null : `(${key.ts}, ${key.seq})`;
}

function sortedJson(value: Readonly<Record<string, string>>): string {
  return JSON.stringify(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
