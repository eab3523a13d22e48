import { connectCodeNames } from "../model/connect-code-names.ts";
import { RunvaultError } from "../model/error.ts";
import { isTableName, tableHint, tableNamed, tableNames } from "../model/profile/table.ts";
import { nearestName } from "../model/text/nearest-name.ts";
import { type Asked, documentRoutes } from "../serve/wire-hook.ts";

/** Codes of a 409 for history, the usual one first. */
const conflictCodes = ["history_identity_conflict", "history_unavailable", "history_incomplete"] as const;

/** The meaning of an argument. ROW, BYTES, SECONDS, MILLISECONDS, DIFFERENCE and PAGE all become `Fault.at`. */
type ArgumentName =
  | "ROW"
  | "BYTES"
  | "SECONDS"
  | "MILLISECONDS"
  | "DIFFERENCE"
  | "COUNT"
  | "CAP"
  | "REQUESTS"
  | "COLUMN"
  | "PAGE"
  | "CODE"
  | "?SECONDS"
  | "?COUNT"
  | "?CAP"
  | "?REQUESTS"
  | "?COLUMN"
  | "?CODE";

interface KindEntry {
  /** In order; those with a question mark are optional. */
  readonly args: readonly ArgumentName[];
  /** Default of `*TIMES`: `Infinity` for faults in data, 1 for faults that a retry should overcome. */
  readonly times: number;
  /** Also possible on a document route. */
  readonly documents?: true;
  /** Smallest value of `at`. */
  readonly least?: number;
  /** Possible values of CODE. */
  readonly codes?: readonly string[];
  /** The only transport that has this fault. */
  readonly only?: "rest" | "rpc";
  readonly meaning: string;
}

const always = Number.POSITIVE_INFINITY;

/**
 * Faults that change rows or facts count rows in the run's whole table in key order, from 1, and remember them by
 * identity, so that other requests, in any window, get the same fault on the same row. Faults of an answer (cut,
 * cut-clean, stall, cap) count rows in the answer.
 */
const kinds = {
  cut: {
    args: ["ROW"],
    times: 1,
    least: 0,
    only: "rest",
    meaning: "the connection drops after ROW rows of the answer, without the end of the chunked body",
  },
  "cut-clean": {
    args: ["ROW"],
    times: 1,
    least: 0,
    meaning: "the answer ends after ROW rows as if complete; over RPC without a next-page token",
  },
  "cut-bytes": {
    args: ["BYTES"],
    times: 1,
    least: 0,
    meaning: "the connection drops after BYTES bytes of the body as sent",
  },
  "cut-bytes-clean": {
    args: ["BYTES"],
    times: 1,
    least: 0,
    meaning: "the body ends after BYTES bytes as sent, as if complete",
  },
  stall: {
    args: ["ROW"],
    times: 1,
    least: 0,
    meaning: "the answer stays open but sends nothing after ROW rows, over RPC after half of such a page",
  },
  delay: {
    args: ["MILLISECONDS"],
    times: always,
    least: 0,
    documents: true,
    meaning: "the answer, over RPC each page, starts MILLISECONDS later",
  },
  "rate-limit": {
    args: ["?SECONDS"],
    times: 1,
    least: 0,
    documents: true,
    meaning: "429 rate_limited, over RPC resource_exhausted, with Retry-After: SECONDS (1)",
  },
  "status-500": { args: [], times: 1, documents: true, meaning: "500 internal, over RPC internal" },
  "status-502": {
    args: [],
    times: 1,
    documents: true,
    meaning: "502 history_unreachable, over RPC unavailable",
  },
  "status-409": {
    args: ["?CODE"],
    times: always,
    documents: true,
    codes: conflictCodes,
    meaning: `409 CODE: ${conflictCodes.join(", ")}; the first by default`,
  },
  absent: {
    args: [],
    times: always,
    meaning: "runs do not have the table: 409 history_unavailable for its rows, and storage facts omit it",
  },
  cap: {
    args: ["ROW"],
    times: always,
    meaning: "at most ROW rows per answer, over RPC per listing with all its pages, silently",
  },
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
      "rows ROW to ROW+COUNT-1 (1) appear only from the REQUESTS-th request for facts or rows of the table on; REQUESTS is required here",
  },
  repeat: { args: ["ROW"], times: always, meaning: "row ROW is sent twice" },
  malformed: {
    args: ["ROW"],
    times: always,
    meaning: "row ROW is cut in half, so it is not valid JSON; over RPC a page with it fails",
  },
  "wrong-type": {
    args: ["ROW", "?COLUMN"],
    times: always,
    meaning: 'COLUMN (seq) of row ROW is "abc"; over RPC a page with it fails, unless COLUMN is text',
  },
  decimals: {
    args: ["ROW", "?COLUMN"],
    times: always,
    meaning: "the exact column COLUMN (the first) of row ROW has twelve decimals",
  },
  number: {
    args: ["ROW", "?COLUMN"],
    times: always,
    meaning:
      "the exact column COLUMN (the first) of row ROW is a JSON number instead of a string; over RPC a page with it fails",
  },
  "missing-key": {
    args: ["ROW", "?COLUMN"],
    times: always,
    meaning: "COLUMN (the last) of row ROW is missing; over RPC a page with it fails",
  },
  "unknown-field": {
    args: ["ROW"],
    times: always,
    meaning: "row ROW has an additional field, over RPC one with an unknown number",
  },
  "out-of-order": { args: ["ROW"], times: always, meaning: "rows ROW and ROW+1 are swapped" },
  "foreign-run": { args: ["ROW"], times: always, meaning: "row ROW has another run_id" },
  "out-of-bounds": {
    args: ["ROW"],
    times: always,
    meaning: "row ROW has a ts_event just outside the requested window",
  },
  "facts-disagree": {
    args: ["DIFFERENCE"],
    times: always,
    least: Number.NEGATIVE_INFINITY,
    meaning:
      "storage facts count DIFFERENCE rows more (fewer if negative) than there are, at the table's first row",
  },
  "facts-ignore-bounds": {
    args: [],
    times: always,
    meaning: "storage facts are always those of the whole run",
  },
  "page-repeat": {
    args: ["PAGE"],
    times: 1,
    only: "rpc",
    meaning: "page PAGE is sent again instead of the next one, with the next one's token",
  },
  "token-expired": {
    args: ["PAGE"],
    times: 1,
    only: "rpc",
    meaning: "the token after page PAGE is refused as invalid_argument",
  },
  "page-too-large": {
    args: ["PAGE"],
    times: 1,
    only: "rpc",
    meaning: "page PAGE is larger than 4 MiB because of an unknown field; binary only",
  },
  "connect-error": {
    args: ["CODE"],
    times: 1,
    documents: true,
    only: "rpc",
    codes: connectCodeNames,
    meaning: "Connect error CODE, such as unavailable or deadline_exceeded, without a history code",
  },
  deadline: {
    args: [],
    times: 1,
    documents: true,
    only: "rpc",
    meaning: "there is no answer until the client's deadline has passed or the client leaves",
  },
  "field-twice": {
    args: ["ROW", "?COLUMN"],
    times: always,
    only: "rpc",
    meaning: "COLUMN (seq) is set twice in row ROW, the second time to a different value",
  },
  "compress-small": {
    args: [],
    times: always,
    documents: true,
    only: "rpc",
    meaning: "even small answers are compressed, if the client accepts gzip over Connect",
  },
} as const satisfies Record<string, KindEntry>;

export type FaultKind = keyof typeof kinds;

/** Kinds that never occur over REST. */
export type RpcFaultKind = {
  [Kind in FaultKind]: (typeof kinds)[Kind] extends { readonly only: "rpc" } ? Kind : never;
}[FaultKind];

/** A placed fault. `faultKinds` explains `at` and the rest for each kind. */
export interface Fault {
  /** As the user wrote it. */
  readonly text: string;
  readonly kind: FaultKind;
  /** `*` is any table. */
  readonly target: Asked | "*";
  /** A row, bytes, seconds, milliseconds, a difference or a page; 0 if the kind has none of these. */
  readonly at: number;
  /** How many rows, from `at` on. */
  readonly count: number;
  readonly cap: number;
  /** The request that releases late rows; Infinity if only `release` does. */
  readonly requests: number;
  readonly column: string | undefined;
  /** The error's code; undefined if not given. */
  readonly code: string | undefined;
  /** How many answers it affects; Infinity for all. */
  readonly times: number;
}

/** All faults, for `--help`: each with its form and its meaning in one line. */
export const faultKinds: readonly FaultForm[] = Object.entries(kinds as Record<FaultKind, KindEntry>).map(
  ([kind, entry]) => ({
    kind: kind as FaultKind,
    form: formOf(kind, entry),
    meaning: entry.only === undefined ? entry.meaning : `${entry.only.toUpperCase()}: ${entry.meaning}`,
    only: entry.only,
  }),
);

export interface FaultForm {
  readonly kind: FaultKind;
  readonly form: string;
  readonly meaning: string;
  /** The only transport that has it. */
  readonly only: "rest" | "rpc" | undefined;
}

/** The syntax of faults, in one paragraph, for `--help`. */
export const faultGrammar =
  "KIND@TABLE[:ARGUMENT,…][*TIMES]. TABLE * is any table; delay, rate-limit, status-…, connect-error, deadline and compress-small " +
  `also take the documents ${documentRoutes.join(", ")}. TIMES is the number of answers affected, over all runs; default: ` +
  "1 for cut…, stall, rate-limit, status-5…, page-…, token-expired, connect-error and deadline, otherwise all. " +
  "Rows count from 1: in the answer for cut, cut-clean, stall and cap; in the run's whole table in key order for the " +
  "others, so that the same row is affected in every request. Pages count from 1 in their listing. A fault " +
  "marked REST or RPC occurs only there.";

function formOf(kind: string, entry: KindEntry): string {
  const args = entry.args.map((arg, index) => {
    const text = `${index === 0 ? ":" : ","}${arg.replace("?", "")}`;
    return arg.startsWith("?") ? `[${text}]` : text;
  });
  return `${kind}@TABLE${args.join("")}`;
}

/** Reads `cut@fills:1000`. Throws `invalid_argument` with the possible forms. */
export function parseFault(text: string): Fault {
  const match = /^([a-z0-9-]+)@([a-z_]+|\*)(?::([^*]*))?(?:\*(\d+))?$/.exec(text);
  const [, kindText = "", target = "", argText, timesText] = match ?? [];
  if (match === null) throw refusal(text, "it must have the form KIND@TABLE[:ARGUMENT,…][*TIMES]");
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
  if (times < 1) throw refusal(text, "TIMES must be at least 1");
  if (timesText !== undefined && (kind === "late" || kind === "tie-cap" || kind === "absent")) {
    throw refusal(text, `${kind} takes no TIMES, because rows and facts would no longer agree`);
  }

  const given = argText === undefined ? [] : argText.split(",");
  if (given.length > entry.args.length) throw refusal(text, `it must have the form ${formOf(kind, entry)}`);
  const fault = { at: 0, count: 1, cap: 0, requests: always, ...noWords };
  if (kind === "rate-limit") fault.at = 1;
  if (kind === "tie-cap") fault.count = 100;
  for (const [index, argument] of entry.args.entries()) {
    const value = given[index];
    if (value === undefined) {
      if (!argument.startsWith("?")) throw refusal(text, `it must have the form ${formOf(kind, entry)}`);
      continue;
    }
    const name = argument.replace("?", "");
    if (name === "COLUMN") {
      fault.column = knownColumn(text, kind, target, value);
      continue;
    }
    if (name === "CODE") {
      const { codes = [] } = entry;
      if (!codes.includes(value))
        throw refusal(text, `there is no code ${value} here`, codeHint(value, codes));
      fault.code = value;
      continue;
    }
    if (!/^-?\d{1,15}$/.test(value)) throw refusal(text, `${name} must be a whole number, not ${value}`);
    const number = Number(value);
    if (name === "COUNT" || name === "CAP" || name === "REQUESTS") {
      if (number < 1) throw refusal(text, `${name} must be at least 1`);
      fault[name.toLowerCase() as "count" | "cap" | "requests"] = number;
    } else {
      const least = entry.least ?? 1;
      if (number < least) throw refusal(text, `${name} must be at least ${least}`);
      fault.at = number;
    }
  }
  if (kind === "tie-cap" && fault.cap === 0) fault.cap = Math.max(1, Math.floor(fault.count / 2));
  return { text, kind, target: target as Fault["target"], times, ...fault };
}

const noWords: { column: string | undefined; code: string | undefined } = {
  column: undefined,
  code: undefined,
};

function codeHint(given: string, codes: readonly string[]): string {
  const near = nearestName(given, codes);
  return `${near === null ? "" : `Did you mean ${near}? `}The codes are ${codes.join(", ")}.`;
}

function knownColumn(text: string, kind: FaultKind, target: string, column: string): string {
  const wantsExact = kind === "decimals" || kind === "number";
  const candidates = (target === "*" ? tableNames : [target]).flatMap((name) => tableNamed(name).columns);
  const names = candidates.filter((found) => !wantsExact || found.kind === "exact").map(({ name }) => name);
  if (!names.includes(column)) {
    const what = wantsExact ? "exact column" : "column";
    throw refusal(
      text,
      `there is no ${what} ${column}`,
      `The columns are ${[...new Set(names)].join(", ")}.`,
    );
  }
  return column;
}

function refusal(text: string, why: string, hint = `Write ${faultGrammar}`): RunvaultError {
  return new RunvaultError("invalid_argument", `invalid fault ${JSON.stringify(text)}: ${why}`, { hint });
}
