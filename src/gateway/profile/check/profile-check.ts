import type { TableName } from "../../../model/profile/table.ts";
import type { RunRef } from "../../../model/source.ts";

/** What can be wrong with a profile as its gateway's answers show it. */
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
  // what was asked for
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
  // what the check itself cannot do
  "not_checked",
] as const;
export type FindingKind = (typeof findingKinds)[number];

/** A mistake of a profile, or what looks like one. */
export interface Finding {
  readonly kind: FindingKind;
  /** The key of the profile that it is about, with dots. */
  readonly key: string;
  readonly message: string;
  /** What to do, a sentence or two. */
  readonly hint: string;
}

/** What one request brought. */
export interface AnswerSeen {
  /** As sent, from the origin on, with secrets masked: `GET /v2/desks`. */
  readonly request: string;
  readonly status: number | null;
  readonly mediaType: string | null;
  /** What was in it: `50 rows`, `2 entries`. */
  readonly holds: string;
}

export interface DocumentCheck extends AnswerSeen {
  readonly document: string;
  /** What it was read to say, such as the words of statuses: name and value. */
  readonly read: readonly (readonly [name: string, value: string])[];
  readonly findings: readonly Finding[];
}

export interface ColumnCheck {
  readonly column: string;
  /** A field's path with dots, or what it is without one: `the run's id`. */
  readonly from: string;
  /** The first value that is not empty, as the gateway wrote it; null where no row has one. */
  readonly raw: string | null;
  /** The same as it goes into the archive; null where it cannot. */
  readonly canonical: string | null;
  /** Whether every row seen has the empty value. */
  readonly empty: boolean;
}

export interface UnusedField {
  readonly field: string;
  readonly raw: string;
  /** The column whose name is nearest; null where none is near. */
  readonly nearest: string | null;
}

/** Whether the gateway heeds one of the things that it is asked. */
export interface HeedCheck {
  readonly what: string;
  readonly result: "ok" | "wrong" | "not checked";
  readonly told: string;
}

/** The strongest proof that a table can reach over this profile, see docs/proof.md. */
export interface ReachableProof {
  readonly reach: "hashed" | "counted" | "exhausted" | "none";
  readonly why: string;
}

export interface TableCheck extends AnswerSeen {
  readonly table: TableName;
  /** The run whose rows were looked at. */
  readonly run: RunRef;
  readonly rows: number;
  readonly columns: readonly ColumnCheck[];
  readonly unused: readonly UnusedField[];
  readonly heeds: readonly HeedCheck[];
  readonly proof: ReachableProof;
  readonly findings: readonly Finding[];
  readonly requests: number;
}

/** A profile held against its gateway. */
export interface ProfileCheck {
  readonly profile: string;
  readonly file: string;
  readonly gateway: string;
  /** The run that was asked for; null where none was found. */
  readonly run: RunRef | null;
  readonly documents: readonly DocumentCheck[];
  readonly tables: readonly TableCheck[];
  /** Tables that the profile says the gateway does not have. */
  readonly none: readonly TableName[];
  /** Tables of which it says nothing. */
  readonly notDescribed: readonly TableName[];
  /** What belongs to no document and no table. */
  readonly findings: readonly Finding[];
  readonly requests: number;
}

/** All that was found, documents first. */
export function allFindings({ findings, documents, tables }: ProfileCheck): readonly Finding[] {
  // what is wrong with a document is why no run is known
  return [...documents.flatMap((one) => one.findings), ...findings, ...tables.flatMap((one) => one.findings)];
}
