import type { DescField, DescMessage, DescMethodUnary, FileRegistry } from "@bufbuild/protobuf";
import { RunvaultError } from "../../../model/error.ts";
import { type TableName, tableNamed, tableNames } from "../../../model/profile/table.ts";
import type { RunRef } from "../../../model/source.ts";
import { statusHints } from "../../http/error-answer.ts";
import { HttpSession } from "../../http/http-session.ts";
import type { GatewayOptions } from "../../options.ts";
import { jsonOf } from "../check/asker.ts";
import { type JsonObject, nodeAt } from "../check/json-node.ts";
import { shortText } from "../check/row-page.ts";
import { RpcAsker } from "../check/rpc-asker.ts";
import { routeOverRpc } from "../check/rpc-requests.ts";
import type { RpcProfile, RpcRoute } from "../profile.ts";
import { compileRpc } from "../rpc/compile-rpc.ts";
import { readDescriptorSet } from "../rpc/descriptor-set.ts";
import { followPath, isTimestamp, wrapped } from "../rpc/message-path.ts";
import { type AboutField, columnLines, scalar } from "./column-lines.ts";
import { rpcDocumentLines } from "./draft-rpc-documents.ts";
import { type ParameterRole, tableOfPath } from "./guessed-names.ts";
import { isText, listFields, singleFields } from "./message-fields.ts";
import { dotted, requestNames, requestText } from "./request-names.ts";

export interface RpcDraftRequest {
  readonly gateway: GatewayOptions;
  /** Of the profile. */
  readonly name: string;
  /** The descriptor set, and how the profile names it. */
  readonly descriptors: { readonly file: string; readonly written: string };
  /** A run to ask for rows of. */
  readonly run: RunRef;
  readonly signal: AbortSignal;
}

/** Rows of one answer: few enough for any gateway. */
const fewRows = 10;
/** More guessed methods would be a scan. */
const mostRequests = 40;
/** Of methods that the draft makes nothing of. */
const mostShown = 20;

/**
 * A profile for a gateway of RPC as far as its descriptors and a few rows show: each guess with its reason in a comment,
 * and `"?"` for what nobody can know from them, which no profile may have. Throws what keeps from asking at all.
 */
export async function draftRpcProfile({
  gateway,
  name,
  descriptors,
  run,
  signal,
}: RpcDraftRequest): Promise<string> {
  const set = readDescriptorSet(descriptors.file);
  if (!("registry" in set)) {
    throw new RunvaultError("invalid_argument", `--descriptors ${set.message}`, {
      place: { file: descriptors.file },
      hint: set.hint,
    });
  }
  const methods = methodsOf(set.registry);
  await using session = new HttpSession(gateway);
  const asking = new Asking(session, descriptors.file, run, signal);
  const overRpc: string[] = [];
  const columns: string[] = [];
  const missing: TableName[] = [];
  const used = new Set<DescMethodUnary>();
  for (const table of tableNames) {
    const candidates = methods.flatMap((method) => candidateOf(method, table));
    const found = await asking.best(candidates);
    if (found === undefined) {
      missing.push(table);
      continue;
    }
    for (const { method } of candidates) used.add(method);
    overRpc.push(...methodLines(found));
    columns.push(
      `  ${table}:`,
      ...columnLines(tableNamed(table), found.rows, run, aboutFields(found.candidate.row)).map(
        (line) => `    ${line}`,
      ),
    );
  }
  const documents = rpcDocumentLines(methods, used);
  const lines = [
    '# A draft: read each line against the gateway\'s documentation. "?" is what rows cannot show; no such profile loads.',
    "profile: 1",
    `name: ${name}`,
    "rpc:",
    asking.protocol === undefined
      ? '  protocol: "?"  # grpc or connect: no call was answered'
      : `  protocol: ${asking.protocol}  # a call was answered by it`,
    `  descriptors: ${scalar(descriptors.written)}`,
    ...documents.map((line) => `  ${line}`),
    "  tables:",
    ...overRpc.map((line) => `  ${line}`),
    "tables:",
    ...columns,
  ];
  if (columns.length === 0)
    lines.push('  "?": none  # no method looks like one that lists the rows of a table');
  if (missing.length > 0) {
    lines.push(
      `  # no method looks like one for ${missing.join(", ")}: give each one, or \`none\` if there is no such history`,
    );
  }
  const others = methods.filter((method) => !used.has(method)).map((method) => scalar(nameOf(method)));
  if (others.length > 0) {
    const more = others.length > mostShown ? ", …" : "";
    lines.push(`  # methods that no name says the use of: ${others.slice(0, mostShown).join(", ")}${more}`);
  }
  // a draft that nobody has read is no profile
  if (!lines.slice(1).some((line) => line.includes('"?"'))) {
    lines[2] = 'name: "?"  # a name for it, once each line has been read';
  }
  return `${lines.join("\n")}\n`;
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
  /** What of it names the table. */
  readonly why: string;
}

interface Found {
  readonly candidate: Candidate;
  readonly rows: readonly JsonObject[];
  /** What came of asking. */
  readonly told: string;
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
  // what no run can be asked of is no history of runs
  if (names.run === undefined) return [];
  const byMethod = tableOfPath(method.name) === table;
  if (!byMethod && (tableOfPath(method.name) !== undefined || tableOfPath(list.field.name) !== table))
    return [];
  const next = singleFields(method.output).find(
    ({ path, field }) => isText(field) && /next|cursor|token/i.test(path.at(-1)!),
  );
  const why = byMethod ? "by the method's name" : `by the name of ${scalar(dotted(list.path))} in its answer`;
  return [{ table, method, names, list: list.path, row, next: next?.path, why }];
}

/** Asks candidates for rows, by the protocol that the gateway turns out to speak. */
class Asking {
  protocol: RpcProfile["protocol"] | undefined;
  readonly #session: HttpSession;
  readonly #file: string;
  readonly #run: RunRef;
  readonly #signal: AbortSignal;
  #left = mostRequests;

  constructor(session: HttpSession, file: string, run: RunRef, signal: AbortSignal) {
    this.#session = session;
    this.#file = file;
    this.#run = run;
    this.#signal = signal;
  }

  /** The first candidate that gives rows; where none does, the first. */
  async best(candidates: readonly Candidate[]): Promise<Found | undefined> {
    let first: Found | undefined;
    for (const candidate of candidates) {
      const found = await this.#ask(candidate);
      if (found.rows.length > 0) return found;
      first ??= found;
    }
    return first;
  }

  async #ask(candidate: Candidate): Promise<Found> {
    const protocols = this.protocol === undefined ? (["grpc", "connect"] as const) : [this.protocol];
    let told = "it was not asked";
    for (const protocol of protocols) {
      const profile = profileOf(candidate, protocol, this.#file);
      const route = profile.tables[candidate.table];
      if (route === undefined || this.#left < 1) break;
      this.#left -= 1;
      try {
        return await this.#rows(candidate, profile, route);
      } catch (thrown) {
        if (!(thrown instanceof RunvaultError) || !passable.has(thrown.code)) throw thrown;
        told = thrown.message;
      }
    }
    return { candidate, rows: [], told };
  }

  async #rows(candidate: Candidate, profile: RpcProfile, route: RpcRoute): Promise<Found> {
    const { instanceId, runId } = this.#run;
    const asker = new RpcAsker(this.#session, profile, this.#signal);
    const place = { instance: instanceId, run: runId, table: candidate.table };
    const values = { instance: instanceId, run: runId, limit: fewRows };
    const told = await asker.ask(routeOverRpc(route), values, "", place);
    if (told.status === 401) {
      throw new RunvaultError("unauthenticated", `${told.request}: the gateway answered ${told.text}`, {
        place,
        status: 401,
        hint: statusHints.unauthenticated!,
      });
    }
    this.protocol = profile.protocol;
    const list = told.status === 200 ? nodeAt(jsonOf(told), candidate.list) : undefined;
    const rows = list?.kind === "array" ? list.items.filter((item) => item.kind === "object") : [];
    return {
      candidate,
      rows,
      told: told.refusal === undefined ? `it gave ${rows.length} rows` : `it answered ${told.refusal}`,
    };
  }
}

/** Another method, or another protocol, may do better. */
const passable: ReadonlySet<string> = new Set([
  "not_a_gateway",
  "route_not_found",
  "refused",
  "history_query_failed",
  "malformed_row",
  "server_error",
]);

/** As much of a profile as it takes to ask a method for rows. */
function profileOf(
  { table, method, names, list, next }: Candidate,
  protocol: RpcProfile["protocol"],
  file: string,
): RpcProfile {
  const { instance, run, limit, cursor } = names;
  const pages = next === undefined || cursor === undefined ? "none" : { send: [...cursor], next: [...next] };
  const path = (place: readonly string[] | undefined) => (place === undefined ? undefined : [...place]);
  return compileRpc(
    {
      protocol,
      descriptors: file,
      tables: {
        [table]: {
          method: nameOf(method),
          parameters: { instance: path(instance), run: path(run), limit: path(limit) },
          pages,
          rows: [...list],
        },
      },
    },
    {},
    // what columns need is for the user to say
    { fault: () => undefined, firstOf: (...paths) => paths.at(-1)!, resolve: (_, name) => name },
  );
}

function methodLines({ candidate, told }: Found): string[] {
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
      ? "none  # nothing in the answer is called a token"
      : names.cursor === undefined
        ? `{ send: "?", next: ${scalar(dotted(next))} }  # the answer has a token, and no field of the request is called one`
        : `{ send: ${scalar(dotted(names.cursor))}, next: ${scalar(dotted(next))} }  # by their names`;
  lines.push(
    `    pages: ${token}`,
    `    rows: ${scalar(dotted(list))}  # the repeated message of the answer`,
  );
  if (names.limit !== undefined) {
    lines.push(
      '    largest_limit: "?"  # stands in no descriptor: look it up, or leave the line out if there is none',
    );
  }
  return lines;
}

/** How bounds are written: a Timestamp has its unit, and nothing says on which side of a bound its own time lies. */
function timesText(input: DescMessage, names: Candidate["names"]): string | undefined {
  const bounds = [names.from, names.to].filter((path) => path !== undefined);
  if (bounds.length === 0) return undefined;
  const isStamp = bounds.every((path) => {
    const found = followPath(input, path);
    return "chain" in found && isTimestamp(found.chain.at(-1)!.message);
  });
  const ends =
    'from: "?", to: "?" }  # whether a row of exactly that time is in the answer: inclusive or exclusive';
  return isStamp ? `{ ${ends}` : `{ unit: "?", ${ends}; and the unit`;
}

function aboutFields(row: DescMessage): (field: string) => AboutField | undefined {
  return (name) => {
    const found = followPath(row, name.split("."));
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

/** What a gateway wrote, on one line of a comment. */
function scalarLine(text: string): string {
  return shortText(text.replace(/[\p{C}\s]+/gu, " "), 100);
}
