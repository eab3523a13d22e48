/** What a caller does after an error: retry or stop. */
export type Retry = "again" | "never";

/**
 * How much an error affects: a table of a run, the run, its instance with all runs, or the whole job, which would fail
 * again.
 */
export type Scope = "table" | "run" | "instance" | "job";

/** Exit statuses of the command line; the README and `--help` explain each. */
export const exit = {
  done: 0,
  bug: 1,
  usage: 2,
  gateway: 3,
  incomplete: 4,
  damaged: 5,
  locked: 6,
  storage: 7,
  deadline: 8,
  refused: 9,
  interrupted: 130,
  terminated: 143,
} as const;

/** If several statuses apply, the first of these is the exit status. */
export const exitPrecedence: readonly number[] = [
  exit.interrupted,
  exit.terminated,
  exit.bug,
  exit.damaged,
  exit.storage,
  exit.refused,
  exit.gateway,
  exit.incomplete,
  exit.deadline,
  exit.locked,
  exit.usage,
];

/** Statuses after which the same command may succeed later without any change. */
export const worthRetrying: ReadonlySet<number> = new Set([
  exit.gateway,
  exit.locked,
  exit.storage,
  exit.deadline,
]);

/** All error codes: for each, whether a retry may help, its scope, and its exit status. */
export const errorCodes = {
  // wrong usage or configuration
  invalid_argument: { retry: "never", scope: "run", exit: exit.usage },
  not_an_archive: { retry: "never", scope: "job", exit: exit.usage },
  table_unknown: { retry: "never", scope: "table", exit: exit.usage },
  query_invalid: { retry: "never", scope: "job", exit: exit.usage },
  not_archived: { retry: "never", scope: "run", exit: exit.usage },
  profile_differs: { retry: "never", scope: "run", exit: exit.usage },

  // the gateway is unreachable, or what answers there is not a gateway
  unreachable: { retry: "again", scope: "job", exit: exit.gateway },
  timeout: { retry: "again", scope: "table", exit: exit.gateway },
  rate_limited: { retry: "again", scope: "table", exit: exit.gateway },
  server_error: { retry: "again", scope: "table", exit: exit.gateway },
  history_unreachable: { retry: "again", scope: "table", exit: exit.gateway },
  history_query_failed: { retry: "again", scope: "table", exit: exit.gateway },
  stream_cut: { retry: "again", scope: "table", exit: exit.gateway },
  not_a_gateway: { retry: "never", scope: "job", exit: exit.gateway },
  // not retried: each attempt would bring a few rows, without end
  too_slow: { retry: "never", scope: "table", exit: exit.gateway },

  // refused requests: a retry would be refused, too
  unauthenticated: { retry: "never", scope: "job", exit: exit.refused },
  permission_denied: { retry: "never", scope: "instance", exit: exit.refused },
  misdirected: { retry: "never", scope: "job", exit: exit.refused },
  refused: { retry: "never", scope: "run", exit: exit.refused },
  run_not_found: { retry: "never", scope: "run", exit: exit.refused },
  instance_not_found: { retry: "never", scope: "instance", exit: exit.refused },
  resource_not_found: { retry: "never", scope: "table", exit: exit.refused },
  route_not_found: { retry: "never", scope: "table", exit: exit.refused },
  gone: { retry: "never", scope: "table", exit: exit.refused },
  history_unavailable: { retry: "never", scope: "table", exit: exit.refused },
  capability_unavailable: { retry: "never", scope: "instance", exit: exit.refused },
  state_conflict: { retry: "never", scope: "instance", exit: exit.refused },
  limit_exceeded: { retry: "never", scope: "table", exit: exit.refused },

  // the answer does not match the request, or is not proven complete
  history_identity_conflict: { retry: "never", scope: "table", exit: exit.incomplete },
  // the gateway ignores the profile's name for the run, so it returns the rows of all runs
  not_filtered: { retry: "never", scope: "table", exit: exit.incomplete },
  malformed_row: { retry: "never", scope: "table", exit: exit.incomplete },
  duplicate_row: { retry: "never", scope: "table", exit: exit.incomplete },
  row_order: { retry: "never", scope: "table", exit: exit.incomplete },
  line_too_long: { retry: "never", scope: "table", exit: exit.incomplete },
  value_out_of_range: { retry: "never", scope: "table", exit: exit.incomplete },
  timestamp_capped: { retry: "never", scope: "table", exit: exit.incomplete },
  incomplete: { retry: "never", scope: "table", exit: exit.incomplete },
  // an answer announced more rows than it had: asking for later ones does not help
  rows_missing: { retry: "never", scope: "table", exit: exit.incomplete },
  unverified: { retry: "never", scope: "table", exit: exit.incomplete },
  shrunk: { retry: "never", scope: "table", exit: exit.incomplete },

  // the archive and its disk
  archive_damaged: { retry: "never", scope: "run", exit: exit.damaged },
  locked: { retry: "never", scope: "run", exit: exit.locked },
  storage_full: { retry: "never", scope: "job", exit: exit.storage },
  storage_read_only: { retry: "never", scope: "job", exit: exit.storage },
  storage_forbidden: { retry: "never", scope: "job", exit: exit.storage },
  storage_failed: { retry: "never", scope: "job", exit: exit.storage },

  // our own
  deadline: { retry: "never", scope: "job", exit: exit.deadline },
  interrupted: { retry: "never", scope: "job", exit: exit.interrupted },
  internal: { retry: "never", scope: "run", exit: exit.bug },
} as const satisfies Record<string, { retry: Retry; scope: Scope; exit: number }>;

export type ErrorCode = keyof typeof errorCodes;

/** Where an error happened, as far as known. */
export interface ErrorPlace {
  readonly instance?: string;
  readonly run?: string;
  readonly table?: string;
  /** A slice or timestamp, as text. */
  readonly slice?: string;
  readonly file?: string;
  readonly line?: number;
  /** With a line: the character in it, from 1. */
  readonly column?: number;
  readonly url?: string;
}

/** An exact column, with a type that holds what its own cannot. */
export interface WiderColumn {
  readonly table: string;
  readonly column: string;
  /** Such as `DECIMAL(38,18)`. */
  readonly type: string;
  /** Most digits of its values before and after the point. */
  readonly whole: number;
  readonly scale: number;
}

export interface ErrorDetails {
  readonly cause?: unknown;
  readonly place?: ErrorPlace;
  /** What the user can do, in one sentence; some codes have a usual hint. */
  readonly hint?: string;
  /** How long the gateway asked us to wait. */
  readonly retryAfterMs?: number;
  /** HTTP status, if one led here. */
  readonly status?: number;
  /** The missing capability, as named in the gateway's Capabilities. */
  readonly capability?: string;
  /** For a value that does not fit its column: the columns that are too narrow, with types that would fit. */
  readonly wider?: readonly WiderColumn[];
  /** Its scope, if narrower than its code's. */
  readonly scope?: Scope;
  /** Whether a retry may help, if not as its code says. */
  readonly retry?: Retry;
}

/** The one error class. `message` says what happened; `place` and `hint` say where and what to do. */
export class RunvaultError extends Error {
  override readonly name = "RunvaultError";
  readonly code: ErrorCode;
  readonly place: ErrorPlace;
  readonly hint: string | undefined;
  readonly retryAfterMs: number | undefined;
  readonly status: number | undefined;
  readonly capability: string | undefined;
  readonly wider: readonly WiderColumn[] | undefined;
  readonly scope: Scope;
  readonly retry: Retry;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    // half a surrogate pair, at the end of a quoted text, cannot be encoded in UTF-8 or a header
    super(message.toWellFormed(), details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.place = details.place ?? {};
    this.hint = details.hint ?? usualHints[code];
    this.retryAfterMs = details.retryAfterMs;
    this.status = details.status;
    this.capability = details.capability;
    this.wider = details.wider;
    this.scope = details.scope ?? errorCodes[code].scope;
    this.retry = details.retry ?? errorCodes[code].retry;
  }

  /**
   * Turns any thrown value into a RunvaultError: file system errors by their code, others into `internal` with their
   * cause.
   */
  static from(thrown: unknown, details: ErrorDetails = {}): RunvaultError {
    if (thrown instanceof RunvaultError) return thrown;
    const code = systemCodeOf(thrown);
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    return new RunvaultError(code, message, { ...details, cause: thrown });
  }

  /** The same error with more known about its place. */
  at(place: ErrorPlace): RunvaultError {
    return this.#with({ place: { ...place, ...this.place } });
  }

  /** The same error, with another hint. */
  advising(hint: string): RunvaultError {
    return this.#with({ hint });
  }

  /** The same error with a narrower scope than its code's. */
  concerning(scope: Scope): RunvaultError {
    return this.#with({ scope });
  }

  #with(known: Pick<ErrorDetails, "place" | "scope" | "hint">): RunvaultError {
    const { place, scope, retry, hint, retryAfterMs, status, capability, wider } = this;
    return new RunvaultError(this.code, this.message, {
      cause: this.cause ?? this,
      place,
      scope,
      retry,
      ...(hint === undefined ? {} : { hint }),
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
      ...(status === undefined ? {} : { status }),
      ...(capability === undefined ? {} : { capability }),
      ...(wider === undefined ? {} : { wider }),
      ...known,
    });
  }

  get exit(): number {
    return errorCodes[this.code].exit;
  }

  /** Whether the gateway failed, and not this machine or the rows. */
  get isGateways(): boolean {
    return this.exit === exit.gateway || this.exit === exit.refused;
  }
}

/** The code of a file system error; one without a path is a bug. */
function systemCodeOf(thrown: unknown): ErrorCode {
  const { code, path } = (thrown ?? {}) as Partial<NodeJS.ErrnoException>;
  if (typeof code !== "string") return "internal";
  if (Object.hasOwn(storageCodes, code)) return storageCodes[code]!;
  return typeof path === "string" && /^E[A-Z]+$/.test(code) ? "storage_failed" : "internal";
}

const storageCodes: Record<string, ErrorCode> = {
  ENOSPC: "storage_full",
  EDQUOT: "storage_full",
  EROFS: "storage_read_only",
  EACCES: "storage_forbidden",
  EPERM: "storage_forbidden",
  EIO: "storage_failed",
  EMFILE: "storage_failed",
  ENFILE: "storage_failed",
};

/** Hints for errors without a more specific one. */
export const usualHints: Partial<Record<ErrorCode, string>> = {
  instance_not_found: "`runvault runs --gateway URL` lists what the gateway has.",
  run_not_found: "`runvault runs --gateway URL` lists what the gateway has.",
  not_archived: "`runvault runs` lists what the archive holds.",
  not_an_archive:
    "Check --archive or RUNVAULT_ARCHIVE: it must name an archive's folder, or a folder that is new or empty.",
  archive_damaged:
    "Restore the file from a backup, or remove the run with `runvault rm` and archive it again from its gateway.",
  deadline: "Everything received is kept: the same command continues from there.",
  too_slow:
    "What has arrived is kept: run the same command again when the gateway or the network is faster, or with a lower --min-rate.",
  storage_full: "Free some space or point --archive at a larger disk, then run the same command again.",
  storage_read_only: "Remount the file system read-write, or point --archive elsewhere.",
  storage_forbidden: "Give this user access to the archive folder, or point --archive elsewhere.",
  storage_failed: "Check the disk and the limit on open files, then run the same command again.",
};

/** The exit status for several outcomes. A status that is not in `exit` counts as a bug. */
export function worstExit(statuses: Iterable<number>): number {
  const seen = new Set(
    [...statuses].map((status) =>
      status === exit.done || exitPrecedence.includes(status) ? status : exit.bug,
    ),
  );
  return exitPrecedence.find((status) => seen.has(status)) ?? exit.done;
}
