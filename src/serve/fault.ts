import { RunvaultError } from "../model/error.ts";
import { nearestName } from "../model/nearest-name.ts";
import { isTableName, type TableName, tableHint, tableNamed, tableNames } from "../model/table.ts";

/** The history documents on REST, by the last part of their path; faults of whole answers can be placed on them too. */
export const documentRoutes = ["instances", "runs", "resources", "storage", "summary"] as const;
export type DocumentRoute = (typeof documentRoutes)[number];

/** What an argument of a fault is. The first three and `difference` end up in `Fault.at`. */
type ArgumentName =
  | "ROW"
  | "BYTES"
  | "SECONDS"
  | "DIFFERENCE"
  | "COUNT"
  | "CAP"
  | "REQUESTS"
  | "COLUMN"
  | "?SECONDS"
  | "?COUNT"
  | "?CAP"
  | "?REQUESTS"
  | "?COLUMN";

interface KindEntry {
  /** In order; those with a question mark may be left out. */
  readonly args: readonly ArgumentName[];
  /** Answers it hits where `*TIMES` is not given: `Infinity` for what shapes data, 1 for what a retry should get past. */
  readonly times: number;
  /** May stand on a document route as well. */
  readonly documents?: true;
  /** Smallest value of `at`. */
  readonly least?: number;
  readonly meaning: string;
}

const always = Number.POSITIVE_INFINITY;

/**
 * Rows of faults that change rows or facts are counted in the run's whole table in key order, from 1, and remembered by
 * identity when first needed, so that asking again, in whatever window, meets the same row. Rows of faults that shape
 * an answer (cut, cut-clean, stall, cap) are counted in the answer.
 */
const kinds = {
  cut: {
    args: ["ROW"],
    times: 1,
    least: 0,
    meaning: "connection dropped after ROW rows of the answer, without the end of the chunked body",
  },
  "cut-clean": {
    args: ["ROW"],
    times: 1,
    least: 0,
    meaning: "answer ends after ROW of its rows, closed as if complete",
  },
  "cut-bytes": {
    args: ["BYTES"],
    times: 1,
    least: 0,
    meaning: "connection dropped after BYTES bytes of the body as sent",
  },
  "cut-bytes-clean": {
    args: ["BYTES"],
    times: 1,
    least: 0,
    meaning: "body ends after BYTES bytes as sent, closed as if complete",
  },
  stall: {
    args: ["ROW"],
    times: 1,
    least: 0,
    meaning: "nothing more is sent after ROW rows of the answer; the connection stays open",
  },
  "rate-limit": {
    args: ["?SECONDS"],
    times: 1,
    least: 0,
    documents: true,
    meaning: "429 rate_limited with Retry-After: SECONDS (1)",
  },
  "status-500": { args: [], times: 1, documents: true, meaning: "500 internal" },
  "status-502": { args: [], times: 1, documents: true, meaning: "502 history_unreachable" },
  cap: { args: ["ROW"], times: always, meaning: "at most ROW rows an answer, without a word" },
  "tie-cap": {
    args: ["ROW", "?COUNT", "?CAP"],
    times: always,
    meaning:
      "rows ROW to ROW+COUNT-1 (100) share the timestamp of row ROW, answers hold at most CAP rows (COUNT/2)",
  },
  late: {
    args: ["ROW", "?COUNT", "?REQUESTS"],
    times: always,
    meaning:
      "rows ROW to ROW+COUNT-1 (1) appear with the REQUESTS-th request for facts or rows of the table; give REQUESTS, or they never do",
  },
  repeat: { args: ["ROW"], times: always, meaning: "row ROW is sent twice" },
  malformed: { args: ["ROW"], times: always, meaning: "row ROW is cut in half, so it is not JSON" },
  "wrong-type": {
    args: ["ROW", "?COLUMN"],
    times: always,
    meaning: 'COLUMN (seq) of row ROW is "abc"',
  },
  decimals: {
    args: ["ROW", "?COLUMN"],
    times: always,
    meaning: "exact COLUMN (the first) of row ROW has twelve decimals",
  },
  number: {
    args: ["ROW", "?COLUMN"],
    times: always,
    meaning: "exact COLUMN (the first) of row ROW is a JSON number, not a string",
  },
  "missing-key": {
    args: ["ROW", "?COLUMN"],
    times: always,
    meaning: "COLUMN (the last) of row ROW is left out",
  },
  "unknown-field": { args: ["ROW"], times: always, meaning: "row ROW has one more field" },
  "out-of-order": { args: ["ROW"], times: always, meaning: "rows ROW and ROW+1 are swapped" },
  "foreign-run": { args: ["ROW"], times: always, meaning: "row ROW carries another run_id" },
  "out-of-bounds": {
    args: ["ROW"],
    times: always,
    meaning: "row ROW has a ts_event just outside the window asked for",
  },
  "facts-disagree": {
    args: ["DIFFERENCE"],
    times: always,
    least: Number.NEGATIVE_INFINITY,
    meaning:
      "storage facts say DIFFERENCE rows more (fewer when negative) than there are, at the table's first row",
  },
  "facts-ignore-bounds": {
    args: [],
    times: always,
    meaning: "storage facts are always those of the whole run",
  },
} as const satisfies Record<string, KindEntry>;

export type FaultKind = keyof typeof kinds;

/** A fault, placed. What `at` and the rest mean is in the kind's line of `faultKinds`. */
export interface Fault {
  /** As the user wrote it. */
  readonly text: string;
  readonly kind: FaultKind;
  /** `*` is any table. */
  readonly target: TableName | DocumentRoute | "*";
  /** Row, bytes, seconds or difference; 0 where the kind has none. */
  readonly at: number;
  /** How many rows, from `at` on. */
  readonly count: number;
  readonly cap: number;
  /** The request that releases late rows; Infinity where only `release` does. */
  readonly requests: number;
  readonly column: string | undefined;
  /** How many answers it hits; Infinity is all. */
  readonly times: number;
}

/** The faults there are, for `--help`: each with its form and one line of meaning. */
export const faultKinds: readonly { kind: FaultKind; form: string; meaning: string }[] = Object.entries(
  kinds as Record<FaultKind, KindEntry>,
).map(([kind, entry]) => ({ kind: kind as FaultKind, form: formOf(kind, entry), meaning: entry.meaning }));

/** How a fault is written, in one paragraph, for `--help`. */
export const faultGrammar =
  "KIND@TABLE[:ARGUMENT,…][*TIMES]. TABLE * is any table; rate-limit and status-… also take the documents " +
  `${documentRoutes.join(", ")}. TIMES is how many answers are hit, over all runs: without it 1 for cut…, stall, rate-limit and status-…, ` +
  "all for the others. Rows count from 1: in the answer for cut, cut-clean, stall and cap; in the run's whole " +
  "table in key order for the others, so that the same row is hit however often it is asked for.";

function formOf(kind: string, entry: KindEntry): string {
  const args = entry.args.map((arg, index) => {
    const text = `${index === 0 ? ":" : ","}${arg.replace("?", "")}`;
    return arg.startsWith("?") ? `[${text}]` : text;
  });
  return `${kind}@TABLE${args.join("")}`;
}

/** Reads `cut@fills:1000`. Throws `invalid_argument` with the forms there are. */
export function parseFault(text: string): Fault {
  const match = /^([a-z0-9-]+)@([a-z_]+|\*)(?::([^*]*))?(?:\*(\d+))?$/.exec(text);
  const [, kindText = "", target = "", argText, timesText] = match ?? [];
  if (match === null) throw refusal(text, "it does not have the form KIND@TABLE[:ARGUMENT,…][*TIMES]");
  if (!Object.hasOwn(kinds, kindText)) {
    const near = nearestName(kindText, Object.keys(kinds));
    const hint = `${near === null ? "" : `Did you mean ${near}? `}The kinds are ${Object.keys(kinds).join(", ")}.`;
    throw refusal(text, `there is no kind ${kindText}`, hint);
  }
  const kind = kindText as FaultKind;
  const entry: KindEntry = kinds[kind];
  const isDocument = (documentRoutes as readonly string[]).includes(target);
  if (target !== "*" && !isTableName(target) && !(isDocument && entry.documents === true)) {
    throw refusal(text, `there is no table ${target}`, tableHint(target));
  }
  const times = timesText === undefined ? entry.times : Number(timesText);
  if (times < 1) throw refusal(text, "TIMES is at least 1");
  if (timesText !== undefined && (kind === "late" || kind === "tie-cap")) {
    throw refusal(text, `${kind} takes no TIMES: rows and facts would stop agreeing`);
  }

  const given = argText === undefined ? [] : argText.split(",");
  if (given.length > entry.args.length) throw refusal(text, `it takes the form ${formOf(kind, entry)}`);
  const fault = { at: 0, count: 1, cap: 0, requests: always, column: undefined as string | undefined };
  if (kind === "rate-limit") fault.at = 1;
  if (kind === "tie-cap") fault.count = 100;
  for (const [index, argument] of entry.args.entries()) {
    const value = given[index];
    if (value === undefined) {
      if (!argument.startsWith("?")) throw refusal(text, `it takes the form ${formOf(kind, entry)}`);
      continue;
    }
    const name = argument.replace("?", "");
    if (name === "COLUMN") {
      fault.column = knownColumn(text, kind, target, value);
      continue;
    }
    if (!/^-?\d{1,15}$/.test(value)) throw refusal(text, `${name} is not a whole number: ${value}`);
    const number = Number(value);
    if (name === "COUNT" || name === "CAP" || name === "REQUESTS") {
      if (number < 1) throw refusal(text, `${name} is at least 1`);
      fault[name.toLowerCase() as "count" | "cap" | "requests"] = number;
    } else {
      const least = entry.least ?? 1;
      if (number < least) throw refusal(text, `${name} is at least ${least}`);
      fault.at = number;
    }
  }
  if (kind === "tie-cap" && fault.cap === 0) fault.cap = Math.max(1, Math.floor(fault.count / 2));
  return { text, kind, target: target as Fault["target"], times, ...fault };
}

function knownColumn(text: string, kind: FaultKind, target: string, column: string): string {
  const wantsExact = kind === "decimals" || kind === "number";
  const candidates = (target === "*" ? tableNames : [target]).flatMap((name) => tableNamed(name).columns);
  const names = candidates.filter((found) => !wantsExact || found.kind === "exact").map(({ name }) => name);
  if (!names.includes(column)) {
    const what = wantsExact ? "exact column" : "column";
    throw refusal(text, `there is no ${what} ${column}`, `There are ${[...new Set(names)].join(", ")}.`);
  }
  return column;
}

function refusal(text: string, why: string, hint = `Write ${faultGrammar}`): RunvaultError {
  return new RunvaultError("invalid_argument", `not a fault: ${JSON.stringify(text)}: ${why}`, { hint });
}
