// node scripts/error-reference.ts (npm run reference): writes docs/errors.md, the table of error codes, from
// src/model/error.ts. test/model/error-reference.test.ts compares the two.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type ErrorCode, errorCodes } from "../src/model/error.ts";

export const errorsFile = join(import.meta.dirname, "../docs/errors.md");

/** What happened, in a sentence; a new code needs one to compile. */
const meanings: Readonly<Record<ErrorCode, string>> = {
  invalid_argument: "An option, a file or a value in it is wrong.",
  not_an_archive: "The folder is missing, is something else, or belongs to a newer runvault.",
  table_unknown: "There is no table of this name.",
  query_invalid: "DuckDB refuses the statement, or it needs more memory than it may have.",
  not_archived: "The archive does not have this run.",
  profile_differs:
    "Rows that are already here came through another profile, and would be other rows by this one.",
  unreachable: "Nothing answers at the gateway's address.",
  timeout: "The gateway took too long to answer.",
  rate_limited: "The gateway asks for fewer requests.",
  server_error: "The gateway failed (HTTP 5xx).",
  history_unreachable: "The gateway cannot reach its history database.",
  history_query_failed: "The gateway's history database failed, or its answer cannot be decoded.",
  stream_cut: "An answer ended in the middle.",
  not_a_gateway: "Something else answers at this address, or not as the profile says.",
  too_slow: "Rows came more slowly than `--min-rate`.",
  unauthenticated: "The gateway wants a token, or refuses this one.",
  permission_denied: "The token may not read this instance.",
  misdirected: "The server does not answer for this host name.",
  refused: "The gateway calls the request wrong, or sends us to another server.",
  run_not_found: "The gateway does not have this run.",
  instance_not_found: "The gateway does not have this instance.",
  resource_not_found: "The gateway does not have this resource.",
  route_not_found: "The gateway does not have this path.",
  gone: "The gateway no longer has what was asked for.",
  history_unavailable: "The gateway keeps no such table for this run.",
  capability_unavailable: "The instance cannot do this.",
  state_conflict: "The instance is in a state that does not allow this.",
  limit_exceeded: "The request or the answer is larger than the other side allows.",
  history_identity_conflict: "Rows or a document belong to another run than the one asked for.",
  not_filtered:
    "The gateway sends the rows of all runs for each: it ignores the parameter that names the run.",
  malformed_row: "A row is not what the table's columns say.",
  duplicate_row: "Two rows have the same key.",
  row_order: "Rows came in another order than the table's.",
  line_too_long: "A row is longer than 16 MiB.",
  value_out_of_range: "A value does not fit its exact column.",
  timestamp_capped: "More rows have one timestamp than the gateway sends in one answer.",
  incomplete: "Rows are known to be missing.",
  rows_missing: "An answer announced more rows than came.",
  unverified: "Rows came, but nothing proves that they are all.",
  shrunk: "The gateway has fewer rows than the archive has proven.",
  archive_damaged: "A file of the archive is missing, or is not what was committed.",
  locked: "Another process is writing this run or archive.",
  storage_full: "The disk or the quota is full.",
  storage_read_only: "The file system is read-only.",
  storage_forbidden: "The system denies access to a file.",
  storage_failed: "The system could not read or write a file.",
  deadline: "The job's deadline has passed.",
  interrupted: "Ctrl-C or SIGTERM.",
  internal: "A bug in runvault: please report it, with `--debug`.",
};

/** Docs/errors.md as it should be. */
export function errorsText(): string {
  const rows = Object.entries(errorCodes).map(
    ([code, { retry, scope, exit }]) =>
      `| \`${code}\` | ${exit} | ${scope === "table" ? "" : scope} | ${retry === "again" ? "yes" : ""} | ${meanings[code as ErrorCode]} |`,
  );
  return `# Error codes

<!-- made by npm run reference from src/model/error.ts -->

An error has a code that stays the same from version to version; \`--json\` and \`--log-format json\` print it. Its message says
what happened and where, its hint what to do.

- **exit**: the [exit status](../README.md#exit-codes) of a command that ends with it.
- **stops**: more than the table that it concerns: its run, all runs of the instance, or the whole job. Everything else goes on.
- **again**: runvault asks again by itself, within \`--retries\`, before it gives up.

| code | exit | stops | again | what happened |
| --- | --- | --- | --- | --- |
${rows.join("\n")}
`;
}

if (import.meta.main) writeFileSync(errorsFile, errorsText());
