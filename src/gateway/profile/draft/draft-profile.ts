import { RunvaultError } from "../../../model/error.ts";
import { type TableName, tableNamed, tableNames, tables } from "../../../model/profile/table.ts";
import type { RunRef } from "../../../model/source.ts";
import { statusHints } from "../../http/error-answer.ts";
import { HttpSession } from "../../http/http-session.ts";
import type { GatewayOptions } from "../../options.ts";
import { type Asker, jsonOf, NoMoreRequests, type Told } from "../check/asker.ts";
import { arraysIn, type JsonNode, type JsonObject, readJsonText } from "../check/json-node.ts";
import { RestAsker } from "../check/rest-asker.ts";
import { pathText, signOfNext } from "../check/row-page.ts";
import { columnLines, scalar } from "./column-lines.ts";
import { listOfPath, type ParameterRole, parameterRole, tableOfPath } from "./guessed-names.ts";
import type { KnownPath } from "./openapi-paths.ts";

export interface DraftRequest {
  readonly gateway: GatewayOptions;
  /** Of the profile. */
  readonly name: string;
  /** What the gateway's OpenAPI document says; undefined where there is none. */
  readonly described: { readonly base: string; readonly paths: readonly KnownPath[] } | undefined;
  /** A run to ask for rows of. */
  readonly run: RunRef;
  readonly signal: AbortSignal;
}

/** Rows of one answer: few enough for any gateway. */
const fewRows = 10;

/** More guessed paths would be a scan. */
const mostRequests = 40;

/** Of paths that the draft makes nothing of. */
const mostShown = 20;

/**
 * A profile for a gateway as far as its paths and a few rows show: each guess with its reason in a comment, and `"?"` for
 * what nobody can know from them, which no profile may have. Throws what keeps from asking at all.
 */
export async function draftProfile({ gateway, name, described, run, signal }: DraftRequest): Promise<string> {
  await using session = new HttpSession(gateway);
  const base = described?.base ?? "";
  const asker = new RestAsker(session, base, signal, mostRequests);
  const lines = [
    '# A draft: read each line against the gateway\'s documentation. "?" is what rows cannot show; no such profile loads.',
    "profile: 1",
    `name: ${name}`,
    ...(base === "" ? [] : [`rest:`, `  base: ${base}  # the server in the OpenAPI document`]),
    ...documentLines(described?.paths ?? []),
  ];
  const drafted: string[] = [];
  const missing: TableName[] = [];
  for (const table of tableNames) {
    const found = await askTable(asker, table, described?.paths, run);
    if (found === undefined) missing.push(table);
    else drafted.push(...tableLines(table, found, run));
  }
  lines.push("tables:", ...drafted);
  if (drafted.length === 0) lines.push('  "?": none  # no path that was asked for gave rows');
  if (missing.length > 0) {
    lines.push(
      `  # no rows were found of ${missing.join(", ")}: give each a path, or \`none\` if there is no such history`,
    );
  }
  const others = (described?.paths ?? [])
    .map(({ path }) => path)
    .filter((path) => tableOfPath(path) === undefined && listOfPath(path) === undefined);
  if (others.length > 0) {
    const shown = others.slice(0, mostShown).join(", ");
    lines.push(
      `  # paths of the document that no name says the use of: ${shown}${others.length > mostShown ? ", …" : ""}`,
    );
  }
  return `${lines.join("\n")}\n`;
}

interface Found {
  readonly path: string;
  readonly known: KnownPath;
  readonly told: Told;
  readonly around: JsonNode | undefined;
  readonly array: readonly string[] | undefined;
  readonly rows: readonly JsonObject[];
}

/** A table's rows from the first path that gives any; undefined where none does. */
async function askTable(
  asker: Asker,
  table: TableName,
  paths: readonly KnownPath[] | undefined,
  run: RunRef,
): Promise<Found | undefined> {
  const known = paths?.filter(({ path }) => tableOfPath(path) === table) ?? usualPaths(table);
  for (const candidate of known) {
    const path = withIds(candidate.path);
    if (/\{(?!run\}|instance\})/.test(path)) continue;
    const names = namesOf(candidate);
    let told: Told;
    try {
      told = await asker.ask(
        {
          path,
          method: "GET",
          parameters: { ...noNames, instance: names.instance, run: names.run, limit: names.limit },
          times: { unit: "ns", from: "inclusive", to: "exclusive" },
        },
        { instance: run.instanceId, run: run.runId, limit: fewRows },
        "application/json, application/x-ndjson",
        { instance: run.instanceId, run: run.runId, table },
      );
    } catch (thrown) {
      if (thrown instanceof NoMoreRequests) return undefined;
      // another path may do better; a gateway that is not there, or refuses who asks, has none
      if (thrown instanceof RunvaultError && ["route_not_found", "refused"].includes(thrown.code)) continue;
      throw thrown;
    }
    if (told.status === 401) throw unauthenticated(told, table, run);
    const found = told.status === 200 ? rowsIn(told) : undefined;
    if (found !== undefined) return { path, known: candidate, told, ...found };
  }
  return undefined;
}

function unauthenticated({ request }: Told, table: TableName, run: RunRef): RunvaultError {
  return new RunvaultError("unauthenticated", `${request}: the gateway answered 401`, {
    place: { instance: run.instanceId, run: run.runId, table },
    status: 401,
    hint: statusHints.unauthenticated!,
  });
}

const noNames = { from: undefined, to: undefined, filters: {}, fixed: {} } as const;

function usualPaths(table: TableName): KnownPath[] {
  const { path } = tables.find(({ name }) => name === table)!;
  const parameters = ["instance", "run_id", "from", "to", "limit"];
  return [path, path.replace(/^\/history/, ""), `/runs/{run}/${table}`].map((one) => ({
    path: one,
    parameters,
  }));
}

/** A path whose placeholders are ours, as far as their names say which is which. */
function withIds(path: string, sole: "run" | "instance" = "run"): string {
  const holders = path.match(/\{[^}]*\}/g) ?? [];
  return holders.reduce((text, holder) => {
    const only = holders.length === 1 ? sole : undefined;
    const role = only === "instance" ? only : parameterRole(holder.slice(1, -1));
    const id = role === "run" || role === "instance" ? role : only;
    return id === undefined ? text : text.replace(holder, `{${id}}`);
  }, path);
}

function namesOf({ parameters }: KnownPath): Partial<Record<ParameterRole, string>> {
  const names: Partial<Record<ParameterRole, string>> = {};
  for (const name of parameters) {
    const role = parameterRole(name);
    if (role !== undefined) names[role] ??= name;
  }
  return names;
}

function rowsIn(told: Told): Pick<Found, "around" | "array" | "rows"> | undefined {
  const around = jsonOf(told);
  for (const [array, items] of arraysIn(around)) {
    const rows = items.filter((item) => item.kind === "object");
    if (rows.length > 0 && rows.length === items.length) return { around, array, rows };
  }
  const lines = told.text.split("\n").filter((line) => line.trim() !== "");
  const rows = lines.map((line) => readJsonText(line)).filter((node) => node?.kind === "object");
  if (rows.length === 0 || rows.length !== lines.length) return undefined;
  return { around: undefined, array: undefined, rows };
}

function documentLines(paths: readonly KnownPath[]): string[] {
  const lists = paths.flatMap(({ path, parameters }) => {
    const what = listOfPath(path);
    // a list of runs is asked for before any run is known
    return what === undefined ? [] : [{ what, path: withIds(path, "instance"), parameters }];
  });
  const lines = lists.map(
    ({ what, path }) =>
      `  ${what}: { path: ${scalar(path)}, list: "?", id: "?" }  # by its path; say where the list is, and the id`,
  );
  return lines.length === 0
    ? ['documents: "?"  # name the lists of instances and runs, or `given: { INSTANCE: [RUN] }`']
    : ["documents:", ...lines];
}

function tableLines(
  table: TableName,
  { path, known, told, around, array, rows }: Found,
  run: RunRef,
): string[] {
  const names = namesOf(known);
  const sent = (["instance", "run", "from", "to", "limit"] as const).flatMap((role) => {
    const name = names[role];
    const inPath = (role === "instance" || role === "run") && path.includes(`{${role}}`);
    return name === undefined || inPath ? [] : [`${role}: ${scalar(name)}`];
  });
  const form =
    array === undefined ? "lines: true" : `array: ${array.length === 0 ? "[]" : scalar(pathText(array))}`;
  const type = told.mediaType ?? "?";
  return [
    `  ${table}:`,
    `    path: ${scalar(path)}  # it gave ${rows.length} rows`,
    `    parameters: { ${sent.join(", ")} }  # by their names`,
    '    times: { unit: "?" }  # the unit of from and to stands in no row: look it up, and whether each is inclusive',
    `    pages: ${pagesText(names, told, around, array)}`,
    `    rows: { ${form}, media_types: [${scalar(type)}] }  # as the answer has them`,
    ...columnLines(tableNamed(table), rows, run).map((line) => `    ${line}`),
  ];
}

function pagesText(
  names: Partial<Record<ParameterRole, string>>,
  told: Told,
  around: JsonNode | undefined,
  array: readonly string[] | undefined,
): string {
  const sign = signOfNext(told, around, {
    rows:
      array === undefined
        ? { form: "lines", mediaTypes: [] }
        : { form: "array", path: array, mediaTypes: [] },
  });
  if (sign?.by === "link") return "{ by: link }  # the answer has a Link to the next page";
  if (sign?.by === "address")
    return `{ by: address, next: ${scalar(sign.where)} }  # an address stands there`;
  if (sign !== undefined) {
    return `{ by: cursor, send: ${scalar(names.cursor ?? "?")}, next: ${scalar(sign.where)} }  # a cursor stands there`;
  }
  if (names.offset !== undefined)
    return `{ by: offset, send: ${scalar(names.offset)} }  # by the parameter's name`;
  if (names.page !== undefined)
    return `{ by: number, send: ${scalar(names.page)} }  # by the parameter's name`;
  return "none  # nothing in the answer looks like a next page";
}
