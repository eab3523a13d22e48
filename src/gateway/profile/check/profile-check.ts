import type { TableName } from "../../../model/profile/table.ts";
import type { RunRef } from "../../../model/source.ts";

/** What an answer of the gateway may show to be wrong with a profile. */
export const findingKinds = [
  // an answer
  "no_answer",
  "media_type",
  "list_path",
  "no_rows",
  // a row's values
  "missing_field",
  "wrong_value",
  "unknown_word",
  "bare_number",
  "null_value",
  "time_unit",
  "unused_field",
  "bad_row",
  "other_run",
  "same_seq",
  // the request
  "not_heeded",
  "not_filtered",
  "bounds",
  "bounds_unit",
  "order",
  "unsteady",
  "page_kind",
  "page_join",
  // documents
  "run_words",
  "facts",
  // limits of the check itself
  "not_checked",
] as const;
export type FindingKind = (typeof findingKinds)[number];

/** A real or apparent mistake in a profile. */
export interface Finding {
  readonly kind: FindingKind;
  /** The key of the profile, with dots. */
  readonly key: string;
  readonly message: string;
  /** What to do, in a sentence or two. */
  readonly hint: string;
}

/** The result of one request. */
export interface AnswerSeen {
  /** As sent, from the origin on, with secrets masked: `GET /v2/desks`. */
  readonly request: string;
  readonly status: number | null;
  readonly mediaType: string | null;
  /** What it contains: `50 rows`, `2 entries`. */
  readonly holds: string;
}

export interface DocumentCheck extends AnswerSeen {
  readonly document: string;
  /** How it was interpreted, such as the words of statuses: name and value. */
  readonly read: readonly (readonly [name: string, value: string])[];
  readonly findings: readonly Finding[];
}

export interface ColumnCheck {
  readonly column: string;
  /** A field's path with dots, or a description: `the run's id`. */
  readonly from: string;
  /** The first non-empty value, as the gateway wrote it; null if no row has one. */
  readonly raw: string | null;
  /** The same as archived; null if it does not fit. */
  readonly canonical: string | null;
  /** Whether every row seen has the empty value. */
  readonly empty: boolean;
}

export interface UnusedField {
  readonly field: string;
  readonly raw: string;
  /** The column with the most similar name; null if none is similar. */
  readonly nearest: string | null;
}

/** Whether the gateway obeys one part of its requests. */
export interface HeedCheck {
  readonly what: string;
  readonly result: "ok" | "wrong" | "not checked";
  readonly told: string;
}

/** The strongest proof that a table can reach with this profile; see docs/proof.md. */
export interface ReachableProof {
  readonly reach: "hashed" | "counted" | "exhausted" | "none";
  readonly why: string;
}

export interface TableCheck extends AnswerSeen {
  readonly table: TableName;
  /** The run whose rows were checked. */
  readonly run: RunRef;
  readonly rows: number;
  readonly columns: readonly ColumnCheck[];
  readonly unused: readonly UnusedField[];
  readonly heeds: readonly HeedCheck[];
  readonly proof: ReachableProof;
  readonly findings: readonly Finding[];
  readonly requests: number;
}

/** The result of checking a profile against its gateway. */
export interface ProfileCheck {
  readonly profile: string;
  readonly file: string;
  readonly gateway: string;
  /** The run of the check; null if none was found. */
  readonly run: RunRef | null;
  readonly documents: readonly DocumentCheck[];
  readonly tables: readonly TableCheck[];
  /** Tables that the gateway does not have, by the profile. */
  readonly none: readonly TableName[];
  /** Tables that the profile does not mention. */
  readonly notDescribed: readonly TableName[];
  /** Findings outside documents and tables. */
  readonly findings: readonly Finding[];
  readonly requests: number;
}

/** All findings, documents first. */
export function allFindings({ findings, documents, tables }: ProfileCheck): readonly Finding[] {
  // a wrong document explains why no run is known
  return [...documents.flatMap((one) => one.findings), ...findings, ...tables.flatMap((one) => one.findings)];
}
