import { RunvaultError } from "../../../model/error.ts";
import { type TableName, tableNamed, tableNames } from "../../../model/profile/table.ts";
import type { RunRef } from "../../../model/source.ts";
import { HttpSession } from "../../http/http-session.ts";
import type { GatewayOptions } from "../../options.ts";
import { RestAsker } from "../check/rest-asker.ts";
import type { ProfileSecret } from "../profile.ts";
import { mostRequests, mostRuns, sampleWarning } from "./draft-bounds.ts";
import { scalar } from "./draft-line.ts";
import { columnLines } from "./lines/column-lines.ts";
import { countLines } from "./lines/count-lines.ts";
import { type DraftedTable, draftText, mostShown, type ProfileDraft } from "./lines/draft-text.ts";
import { secretLines } from "./lines/secret-lines.ts";
import { requestLines, unseenLines } from "./lines/table-lines.ts";
import { type FoundLists, findLists } from "./seen/find-lists.ts";
import { type FoundRows, rowsIn } from "./seen/found-rows.ts";
import {
  type AskablePath,
  askable,
  countPaths,
  isWhole,
  listPaths,
  runPath,
  tableOfPath,
  tablePaths,
  usualTables,
} from "./seen/known-paths.ts";
import type { KnownPath } from "./seen/openapi-paths.ts";
import { SampleAsker } from "./seen/sample-asker.ts";

export interface DraftRequest {
  readonly gateway: GatewayOptions;
  readonly name: string;
  /** Headers that are sent and that the draft names. */
  readonly headers: readonly ProfileSecret[];
  /** The same for keys in the query. */
  readonly keys: readonly ProfileSecret[];
  /** The folder of the draft. */
  readonly folder: string;
  /** Prefix of every path; by default the OpenAPI document's. */
  readonly base: string | undefined;
  /** The contents of the gateway's OpenAPI document; undefined without one. */
  readonly described: { readonly base: string; readonly paths: readonly KnownPath[] } | undefined;
  /** The run whose rows are requested; by default one from the gateway's lists. */
  readonly run: RunRef | undefined;
  readonly signal: AbortSignal;
}

/**
 * Drafts a profile from a gateway's paths, its lists and a few rows. Each guess has its reason in a comment; values to
 * confirm end in `?`, which no profile may have. Throws if nothing can be requested, or if no run is found and there
 * is no OpenAPI document.
 */
export async function draftProfile(request: DraftRequest): Promise<ProfileDraft> {
  const { gateway, described, run, signal } = request;
  await using session = new HttpSession(gateway);
  const base = request.base ?? described?.base ?? "";
  const asker = new SampleAsker(new RestAsker(session, base, signal, mostRequests));
  const paths = described?.paths;
  const lists = await findLists(asker, paths, run);
  if (lists.runs.length === 0 && paths === undefined) throw noRun(lists);
  const found = await askTables(asker, paths, lists);
  const tables = tableNames.flatMap((name): DraftedTable[] => {
    const seen = found.get(name);
    if (seen !== undefined) return [tableOf(name, seen)];
    const [at] = paths === undefined ? [] : tablePaths(paths, name);
    return at === undefined ? [] : [{ name, ...unseenLines(at) }];
  });
  const missing = tableNames.filter((name) => !tables.some((table) => table.name === name));
  const time = tables[0]?.columns?.find(({ key }) => key === "ts_event");
  const countsAt = paths === undefined ? [] : countPaths(paths);
  const counts = await countLines(asker, countsAt, lists.runs[0], time);
  const summary = paths === undefined ? undefined : runPath(paths);
  return {
    text: draftText({
      ...request,
      rest: [
        ...(base === "" ? [] : [`base: ${scalar(base)}${baseReason(request)}`]),
        ...secretLines("keys", request.keys, request.folder),
      ],
      documents: [
        ...lists.lines,
        ...(counts?.lines ?? []),
        ...(summary === undefined
          ? []
          : [`summary: { path: ${scalar(summary.path)} }  # by its path: it is about one run`]),
      ],
      by: "path",
      tables,
      missing,
      notes: notesOf(paths, counts?.at.known.path),
    }),
    warning: sampleWarning(lists.runs.length, found.size, paths !== undefined),
  };
}

function baseReason({ base }: DraftRequest): string {
  return base === undefined ? "  # the server in the OpenAPI document" : "";
}

function noRun({ asked }: FoundLists): RunvaultError {
  return new RunvaultError(
    "invalid_argument",
    "no run found to request rows from: the gateway's lists lead to none",
    {
      hint:
        `Name a run that has rows as INSTANCE/RUN, with the gateway's ids; or give its OpenAPI document with --openapi, or the ` +
        `descriptor set of its RPC with --descriptors. Paths tried for lists: ${asked.join(", ")}.`,
    },
  );
}

function notesOf(paths: readonly KnownPath[] | undefined, counts: string | undefined): string[] {
  if (paths === undefined) return [];
  const used = new Set(
    [...listPaths(paths, "instances"), ...listPaths(paths, "runs")].map(({ known }) => known.path),
  );
  const summary = runPath(paths)?.known.path;
  const others = paths
    .filter(
      (known) =>
        tableOfPath(askable(known)) === undefined &&
        !used.has(known.path) &&
        ![summary, counts].includes(known.path),
    )
    .map(({ path }) => path);
  return others.length === 0
    ? []
    : [
        `other paths in the document, with names that do not show their use: ${others.slice(0, mostShown).join(", ")}${others.length > mostShown ? ", …" : ""}`,
      ];
}

/** Rows of each table, from the first path and run that return any. */
async function askTables(
  asker: SampleAsker,
  paths: readonly KnownPath[] | undefined,
  { runs, runsPath, names }: FoundLists,
): Promise<ReadonlyMap<TableName, FoundRows>> {
  const found = new Map<TableName, FoundRows>();
  let candidates = tableNames.map((table) => ({
    table,
    at: (paths === undefined ? usualTables(table, runsPath, names) : tablePaths(paths, table)).filter(
      isWhole,
    ),
  }));
  for (const run of runs.slice(0, mostRuns)) {
    // paths that returned no rows are tried again with the next run
    const empty: typeof candidates = [];
    for (const { table, at } of candidates) {
      const answered: AskablePath[] = [];
      for (const one of at) {
        const answer = await asker.rows(one, { instance: run.instanceId, run: run.runId }, table);
        const status = answer?.told.status;
        const rows = answer !== undefined && status === 200 ? rowsIn(answer.told) : undefined;
        if (answer !== undefined && rows !== undefined) {
          found.set(table, { at: one, run, ...answer, ...rows });
          break;
        }
        if (status === 200 || status === 204) answered.push(one);
      }
      if (!found.has(table) && answered.length > 0) empty.push({ table, at: answered });
    }
    candidates = empty;
  }
  return found;
}

function tableOf(name: TableName, found: FoundRows): DraftedTable {
  const { numbers, columns } = columnLines(tableNamed(name), { rows: found.rows, run: found.run });
  const time = columns.find(({ key }) => key === "ts_event");
  return { name, ...requestLines(found, time), numbers, columns };
}
