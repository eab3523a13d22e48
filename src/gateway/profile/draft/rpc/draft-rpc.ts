import type { DescField, DescMessage, DescMethodUnary, FileRegistry } from "@bufbuild/protobuf";
import { type ErrorPlace, RunvaultError } from "../../../../model/error.ts";
import { type TableName, tableNamed, tableNames } from "../../../../model/profile/table.ts";
import type { RunRef } from "../../../../model/source.ts";
import { HttpSession } from "../../../http/http-session.ts";
import type { GatewayOptions } from "../../../options.ts";
import { type AskedFor, type CheckedRequest, jsonOf, type Told } from "../../check/asker.ts";
import { type JsonObject, nodeAt } from "../../check/json-node.ts";
import { shortText } from "../../check/row-page.ts";
import { RpcAsker } from "../../check/rpc-asker.ts";
import { documentsOverRpc, routeOverRpc } from "../../check/rpc-requests.ts";
import type { ProfileSecret, RpcProfile } from "../../profile.ts";
import { compileRpc } from "../../rpc/compile-rpc.ts";
import { readDescriptorSet } from "../../rpc/descriptor-set.ts";
import { followPath, isTimestamp, wrapped } from "../../rpc/message-path.ts";
import type { RpcFile } from "../../rpc/rpc-schema.ts";
import { mostRequests, mostRuns, refusesLimit, rowLimits, sampleWarning } from "../draft-bounds.ts";
import { indented, scalar, unsure } from "../draft-line.ts";
import { type AboutField, columnLines } from "../lines/column-lines.ts";
import { type DraftedTable, draftText, mostShown, type ProfileDraft } from "../lines/draft-text.ts";
import { takenLimitWhy } from "../lines/table-lines.ts";
import { findListings, type ListAsker } from "../seen/find-lists.ts";
import { type ParameterRole, tableOfName } from "../seen/guessed-names.ts";
import type { AskablePath } from "../seen/known-paths.ts";
import type { SampleIds } from "../seen/sample-asker.ts";
import { unitOfName } from "../time-unit.ts";
import { countedTables, listMethods, rpcDocumentLines } from "./draft-rpc-documents.ts";
import { isText, listFields, singleFields } from "./message-fields.ts";
import { dotted, requestNames, requestText } from "./request-names.ts";

export interface RpcDraftRequest {
  readonly gateway: GatewayOptions;
  readonly name: string;
  /** Headers that are sent and that the draft names. */
  readonly headers: readonly ProfileSecret[];
  /** The folder of the draft. */
  readonly folder: string;
  /** Path below which the methods are, instead of the path in the gateway's address. */
  readonly base: string | undefined;
  /** The descriptor set, and how the profile names it. */
  readonly descriptors: { readonly file: string; readonly written: string };
  /** The run whose rows are requested; by default one from the gateway's lists. */
  readonly run: RunRef | undefined;
  readonly signal: AbortSignal;
}

/**
 * Drafts a profile for an RPC gateway from its descriptors, its lists and a few rows. Each guess has its reason in a
 * comment; values to confirm end in `?`, which no profile may have. Throws if nothing can be requested.
 */
export async function draftRpcProfile(request: RpcDraftRequest): Promise<ProfileDraft> {
  const { gateway, descriptors, base, run, signal } = request;
  const set = readDescriptorSet(descriptors.file);
  if (!("registry" in set)) {
    throw new RunvaultError("invalid_argument", `--descriptors ${set.message}`, {
      place: { file: descriptors.file },
      hint: set.hint,
    });
  }
  const methods = methodsOf(set.registry);
  await using session = new HttpSession(gateway);
  const asking = new Asking(session, descriptors.file, base, signal);
  const runs = run === undefined ? await runsOf(asking, methods) : [run];
  const used = new Set<DescMethodUnary>();
  const overRpc: string[] = [];
  const tables: DraftedTable[] = [];
  let seen = 0;
  for (const name of tableNames) {
    const candidates = methods.flatMap((method) => candidateOf(method, name));
    const found = await asking.best(candidates, runs);
    if (found === undefined) continue;
    if (found.rows.length > 0) seen += 1;
    for (const { method } of candidates) used.add(method);
    overRpc.push(...methodLines(found));
    const { row } = found.candidate;
    const sample = {
      rows: found.rows,
      run: found.run,
      known: singleFields(row).map(({ path }) => path),
      about: aboutFields(row),
    };
    tables.push({ name, request: [], times: undefined, ...columnLines(tableNamed(name), sample) });
  }
  const documents = rpcDocumentLines(methods, used, await countedOf(asking, methods, runs[0]));
  const others = methods.filter((method) => !used.has(method)).map((method) => scalar(nameOf(method)));
  const more = others.length > mostShown ? ", …" : "";
  const text = draftText({
    ...request,
    rest: [],
    documents: undefined,
    more: [
      "rpc:",
      asking.protocol === undefined
        ? `  protocol: ${unsure(undefined)}  # grpc or connect: no call got an answer`
        : `  protocol: ${asking.protocol}  # a call succeeded with it`,
      `  descriptors: ${scalar(descriptors.written)}`,
      ...(base === undefined ? [] : [`  base: ${JSON.stringify(base)}`]),
      ...indented(documents),
      ...(overRpc.length === 0 ? [] : ["  tables:", ...indented(overRpc)]),
    ],
    tables,
    by: "method",
    missing: tableNames.filter((name) => !tables.some((table) => table.name === name)),
    notes:
      others.length === 0
        ? []
        : [
            `other methods, with names that do not show their use: ${others.slice(0, mostShown).join(", ")}${more}`,
          ],
  });
  return { text, warning: sampleWarning(runs.length, seen, true) };
}

/** Runs from the lists of the descriptors' methods. */
async function runsOf(asking: Asking, methods: readonly DescMethodUnary[]): Promise<readonly RunRef[]> {
  const { known } = await findListings(asking, {
    instances: listMethods(methods, "instances"),
    named: [],
    runs: () => listMethods(methods, "runs"),
  });
  return known;
}

/** The gateway's names for the tables that it counts, from its answer for a run. */
async function countedOf(
  asking: Asking,
  methods: readonly DescMethodUnary[],
  run: RunRef | undefined,
): Promise<readonly string[]> {
  const counted = countedTables(methods);
  if (counted === undefined || run === undefined) return [];
  const told = await asking.ask(counted.at, { instance: run.instanceId, run: run.runId });
  return told?.status === 200 ? counted.namesIn(jsonOf(told)).slice(0, mostShown) : [];
}

/** A method that may list a table's rows. */
interface Candidate {
  readonly table: TableName;
  readonly method: DescMethodUnary;
  readonly names: Partial<Record<ParameterRole, readonly string[]>>;
  /** Path of the repeated message, and the message. */
  readonly list: readonly string[];
  readonly row: DescMessage;
  readonly next: readonly string[] | undefined;
  /** Which part of it names the table. */
  readonly why: string;
}

interface Found {
  readonly candidate: Candidate;
  readonly run: RunRef;
  readonly rows: readonly JsonObject[];
  /** The result of the request. */
  readonly told: string;
  /** The largest accepted limit, if a larger one was refused. */
  readonly takenLimit?: number;
}

function methodsOf(registry: FileRegistry): DescMethodUnary[] {
  return [...registry].flatMap((type) =>
    type.kind === "service" && !/^(?:grpc|google)\./.test(type.typeName)
      ? type.methods.filter((method): method is DescMethodUnary => method.methodKind === "unary")
      : [],
  );
}

function candidateOf(method: DescMethodUnary, table: TableName): Candidate[] {
  const list = listFields(method.output).find(({ field }) => field.message !== undefined);
  const row = list?.field.message;
  if (list === undefined || row === undefined) return [];
  const names = requestNames(method.input);
  // a method that takes no run cannot return the history of one
  if (names.run === undefined) return [];
  const byMethod = tableOfName(method.name) === table;
  if (!byMethod && (tableOfName(method.name) !== undefined || tableOfName(list.field.name) !== table))
    return [];
  const next = singleFields(method.output).find(
    ({ path, field }) => isText(field) && /next|cursor|token/i.test(path.at(-1)!),
  );
  const why = byMethod ? "by the method's name" : `by the name of ${scalar(dotted(list.path))} in its answer`;
  return [{ table, method, names, list: list.path, row, next: next?.path, why }];
}

/** Calls methods with the protocol that the gateway turns out to speak. */
class Asking implements ListAsker {
  protocol: RpcProfile["protocol"] | undefined;
  readonly #session: HttpSession;
  readonly #file: string;
  readonly #base: string | undefined;
  readonly #signal: AbortSignal;
  #left = mostRequests;

  constructor(session: HttpSession, file: string, base: string | undefined, signal: AbortSignal) {
    this.#session = session;
    this.#file = file;
    this.#base = base;
    this.#signal = signal;
  }

  /** The first candidate that returns rows of one of these runs; else the first. */
  async best(candidates: readonly Candidate[], runs: readonly RunRef[]): Promise<Found | undefined> {
    let first: Found | undefined;
    for (const candidate of candidates) {
      for (const run of runs.slice(0, mostRuns)) {
        const found = await this.#rows(candidate, run);
        if (found.rows.length > 0) return found;
        first ??= found;
      }
      const told = "no run was found to request rows from";
      first ??= { candidate, run: { instanceId: "", runId: "" }, rows: [], told };
    }
    return first;
  }

  /** The answer of a method that may list instances or runs, or count rows. */
  async ask({ path, names }: AskablePath, ids: SampleIds): Promise<Told | undefined> {
    const parameters = { instance: names.instance?.split("."), run: names.run?.split(".") };
    const answer = await this.#told(
      { documents: { summary: { method: path, parameters } } },
      ({ documents }) => documentsOverRpc(documents).summary,
      ids,
      ids,
    );
    return typeof answer === "string" ? undefined : answer;
  }

  async #rows(candidate: Candidate, run: RunRef): Promise<Found> {
    const ids = { instance: run.instanceId, run: run.runId };
    const { table, names } = candidate;
    let refused: Found | undefined;
    for (const limit of names.limit === undefined ? [0] : rowLimits) {
      const answer = await this.#told(
        tableFile(candidate),
        ({ tables }) => tables[table] && routeOverRpc(tables[table]),
        { ...ids, limit },
        { ...ids, table },
      );
      if (typeof answer === "string") return refused ?? { candidate, run, rows: [], told: answer };
      const list = answer.status === 200 ? nodeAt(jsonOf(answer), candidate.list) : undefined;
      const rows = list?.kind === "array" ? list.items.filter((item) => item.kind === "object") : [];
      const told =
        answer.refusal === undefined ? `it returned ${rows.length} rows` : `it answered ${answer.refusal}`;
      const found = { candidate, run, rows, told };
      if (answer.status === 200) return refused === undefined ? found : { ...found, takenLimit: limit };
      refused = found;
      if (!refusesLimit(answer.status)) break;
    }
    return refused!;
  }

  /** The answer to a request of a profile, or why there is none. Throws if the gateway requires a key. */
  async #told(
    file: Pick<RpcFile, "documents" | "tables">,
    requestOf: (profile: RpcProfile) => CheckedRequest | undefined,
    values: AskedFor,
    place: ErrorPlace,
  ): Promise<Told | string> {
    let why = "it was not called";
    const protocols = this.protocol === undefined ? (["grpc", "connect"] as const) : [this.protocol];
    for (const protocol of protocols) {
      const whole = { protocol, descriptors: this.#file, base: this.#base, ...file };
      const profile = compileRpc(whole, {}, noFaults);
      const request = requestOf(profile);
      if (request === undefined || this.#left < 1) break;
      this.#left -= 1;
      let told: Told;
      try {
        told = await new RpcAsker(this.#session, profile, this.#signal).ask(request, values, "", place);
      } catch (thrown) {
        if (!(thrown instanceof RunvaultError) || !passable.has(thrown.code)) throw thrown;
        why = thrown.message;
        continue;
      }
      if (told.status === 401) {
        throw new RunvaultError("unauthenticated", `${told.request}: the gateway answered ${told.text}`, {
          place,
          status: 401,
          hint: this.#session.unauthenticatedHint,
        });
      }
      this.protocol = protocol;
      return told;
    }
    return why;
  }
}

/** A draft leaves open what columns need; the user fills it in. */
const noFaults: Parameters<typeof compileRpc>[2] = {
  fault: () => undefined,
  firstOf: (...paths) => paths.at(-1)!,
  resolve: (_, name) => name,
};

/** After these errors another method or protocol may work. */
const passable: ReadonlySet<string> = new Set([
  "not_a_gateway",
  "route_not_found",
  "refused",
  "history_query_failed",
  "malformed_row",
  "server_error",
]);

/** The part of a profile that requesting rows from a method needs. */
function tableFile({ table, method, names, list, next }: Candidate): Pick<RpcFile, "tables"> {
  const { instance, run, limit, cursor } = names;
  const pages = next === undefined || cursor === undefined ? "none" : { send: [...cursor], next: [...next] };
  const path = (place: readonly string[] | undefined) => (place === undefined ? undefined : [...place]);
  const parameters = { instance: path(instance), run: path(run), limit: path(limit) };
  return { tables: { [table]: { method: nameOf(method), parameters, pages, rows: [...list] } } };
}

function methodLines({ candidate, told, takenLimit }: Found): string[] {
  const { table, method, names, list, next, why } = candidate;
  const lines = [
    `  ${table}:`,
    `    method: ${scalar(nameOf(method))}  # ${why}; ${scalarLine(told)}`,
    `    parameters: ${requestText(names, ["instance", "run", "from", "to", "limit"])}  # by their names`,
  ];
  const times = timesText(method.input, names);
  if (times !== undefined) lines.push(`    times: ${times}`);
  const token =
    next === undefined
      ? "none  # no field of the answer is named like a token"
      : names.cursor === undefined
        ? `{ send: "?", next: ${scalar(dotted(next))} }  # the answer has a token, but no field of the request is named like one`
        : `{ send: ${scalar(dotted(names.cursor))}, next: ${scalar(dotted(next))} }  # by their names`;
  lines.push(
    `    pages: ${token}`,
    `    rows: ${scalar(dotted(list))}  # the repeated message of the answer`,
  );
  if (takenLimit !== undefined)
    lines.push(`    largest_limit: ${unsure(`${takenLimit}`)}  # ${takenLimitWhy}`);
  return lines;
}

/** How bounds are written: a Timestamp has its own unit; whether a bound is inclusive is not in the descriptors. */
function timesText(input: DescMessage, names: Candidate["names"]): string | undefined {
  const bounds = [names.from, names.to].filter((path) => path !== undefined);
  if (bounds.length === 0) return undefined;
  const isStamp = bounds.every((path) => {
    const found = followPath(input, path);
    return "chain" in found && isTimestamp(found.chain.at(-1)!.message);
  });
  const ends = `from: ${unsure("inclusive")}, to: ${unsure("exclusive")}`;
  const why = "the usual ones: look up whether bounds include rows with exactly that time";
  if (isStamp) return `{ ${ends} }  # ${why}`;
  const unit = bounds.map((path) => unitOfName(path.at(-1)!)).find((one) => one !== undefined);
  return `{ unit: ${unsure(unit)}, ${ends} }  # ${why}, and the unit`;
}

function aboutFields(row: DescMessage): (field: readonly string[]) => AboutField | undefined {
  return (path) => {
    const found = followPath(row, path);
    return "chain" in found ? aboutField(found.chain) : undefined;
  };
}

function aboutField(chain: readonly DescField[]): AboutField {
  const field = chain.at(-1)!;
  return {
    isTimestamp: isTimestamp(field.message),
    mayLack:
      field.oneof !== undefined ||
      wrapped(field.message) !== undefined ||
      (field.fieldKind === "scalar" && field.proto.proto3Optional),
    values: field.enum?.values.map(({ name }) => name),
  };
}

function nameOf({ parent, name }: DescMethodUnary): string {
  return `${parent.typeName}.${name}`;
}

/** A text from the gateway, on one line for a comment. */
function scalarLine(text: string): string {
  return shortText(text.replace(/[\p{C}\s]+/gu, " "), 100);
}
