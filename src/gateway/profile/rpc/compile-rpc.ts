import type {
  DescField,
  DescMessage,
  DescMethod,
  DescMethodUnary,
  FileRegistry,
  JsonObject,
} from "@bufbuild/protobuf";
import type { ErrorCode } from "../../../model/error.ts";
import { hasDerivedSeq, type RowMap } from "../../../model/profile/row-map.ts";
import { type FilterName, type Table, type TableName, tables } from "../../../model/profile/table.ts";
import type { KeyPath } from "../../../model/yaml/tree.ts";
import type { PageLayout } from "../../../row/wire/page-index.ts";
import { factFields, runFields } from "../document-fields.ts";
import { type ErrorWord, errorWords } from "../error-schema.ts";
import type { FactFields, RpcDocuments, RpcProfile, RpcRequest, RpcRoute, RunFields } from "../profile.ts";
import { checkRowFields } from "./check-row-fields.ts";
import { methodNamed, readDescriptorSet } from "./descriptor-set.ts";
import type { FaultContext } from "./fault-context.ts";
import { followPath, isTimestamp, kindText } from "./message-path.ts";
import { requestMessage } from "./request-message.ts";
import { rpcDocument } from "./rpc-document.ts";
import type { RpcFile } from "./rpc-schema.ts";

type Route = NonNullable<NonNullable<RpcFile["tables"]>[TableName]>;
type DocumentsFile = NonNullable<RpcFile["documents"]>;
type Described<K extends keyof DocumentsFile> = Exclude<NonNullable<DocumentsFile[K]>, "none">;
type ParametersFile = NonNullable<RpcFile["parameters"]>;

/** Compiles a profile's RPC part against its descriptors and reports its faults as a whole. */
export function compileRpc(
  file: RpcFile,
  maps: Readonly<Partial<Record<TableName, RowMap>>>,
  context: FaultContext,
): RpcProfile {
  const descriptors = context.resolve(["rpc", "descriptors"], file.descriptors);
  const compiled = {
    protocol: file.protocol,
    descriptors,
    base: file.base,
    document: rpcDocument(file, descriptors),
    codes: compileCodes(file, context),
  };
  const set = readDescriptorSet(descriptors);
  if (!("registry" in set)) {
    context.fault(["rpc", "descriptors"], set.message, set.hint);
    return { ...compiled, documents: noDocuments, tables: {} };
  }
  const compiler = new RpcCompiler(file, set.registry, context);
  const routes = tables.flatMap((table) => {
    const own = file.tables?.[table.name];
    const route = own === undefined ? null : compiler.route(table, own, maps[table.name]);
    return route === null ? [] : [[table.name, route] as const];
  });
  return {
    ...compiled,
    documents: compiler.documents(file.documents ?? {}),
    tables: Object.fromEntries(routes),
  };
}

const noDocuments: RpcDocuments = {
  instances: undefined,
  runs: undefined,
  facts: undefined,
  summary: undefined,
  resources: undefined,
  instance: undefined,
  given: {},
};

function compileCodes(file: RpcFile, context: FaultContext): Record<string, ErrorCode> {
  const codes: Record<string, ErrorCode> = {};
  for (const word of Object.keys(errorWords) as ErrorWord[]) {
    for (const [index, code] of (file.errors?.[word] ?? []).entries()) {
      if (Object.hasOwn(codes, code)) {
        context.fault(["rpc", "errors", word, index], "is in two lists", "Remove one of the two.");
      }
      codes[code] = errorWords[word];
    }
  }
  return codes;
}

interface Names {
  readonly instance: boolean;
  readonly run: boolean;
  readonly bounds: boolean;
}

const ofNothing: Names = { instance: false, run: false, bounds: false };
const ofInstance: Names = { instance: true, run: false, bounds: false };
const ofRun: Names = { instance: true, run: true, bounds: false };

class RpcCompiler {
  readonly #file: RpcFile;
  readonly #registry: FileRegistry;
  readonly #context: FaultContext;

  constructor(file: RpcFile, registry: FileRegistry, context: FaultContext) {
    this.#file = file;
    this.#registry = registry;
    this.#context = context;
  }

  route(table: Table, own: Route, map: RowMap | undefined): RpcRoute | null {
    const file = this.#file;
    const at: KeyPath = ["rpc", "tables", table.name];
    const method = this.#method([...at, "method"], own.method);
    if (method === null) return null;
    const pages = own.pages ?? file.pages ?? "none";
    const request = this.#request(
      at,
      method,
      own.parameters,
      own.times ?? file.times,
      {
        ...ofRun,
        bounds: true,
      },
      table,
      pages === "none" ? undefined : pages.send,
    );
    const pagesAt = this.#context.firstOf([...at, "pages"], ["rpc", "pages"], at);
    const rowsAt = this.#context.firstOf([...at, "rows"], ["rpc", "rows"], at);
    const rowsPath = own.rows ?? file.rows;
    if (rowsPath === undefined) {
      this.#context.fault(
        at,
        "needs rows, the repeated field of the answer that contains them",
        `Add it: ${method.output.typeName} has ${method.output.fields.map(({ name }) => name).join(", ")}.`,
      );
      return null;
    }
    const layout = this.#layout(
      method.output,
      rowsPath,
      rowsAt,
      pages === "none" ? undefined : pages.next,
      pagesAt,
    );
    if (layout === null || request === null) return null;
    if (request.places.run === undefined) {
      this.#context.fault(
        this.#context.firstOf([...at, "parameters"], ["rpc", "parameters"], at),
        "does not name the run: the gateway would return the rows of all runs",
        "Name the request's field for it, for example `run: run_id`.",
      );
    }
    const { from, to, token } = request.places;
    if (hasDerivedSeq(map) && token !== undefined && (from === undefined || to === undefined)) {
      this.#context.fault(
        pagesAt,
        "use a token, but rows have no seq and requests do not have both bounds: runvault cannot yet rule out duplicate rows where pages meet",
        "Name from and to under parameters, or the field for seq.",
      );
    }
    checkRowFields(table, map, layout.row, at, this.#context);
    const answer = { rows: rowsPath, next: pages === "none" ? undefined : pages.next };
    return { ...request, ...layout, answer, map, largestLimit: own.largest_limit ?? file.largest_limit };
  }

  documents(documents: DocumentsFile): RpcDocuments {
    const own = <K extends keyof DocumentsFile>(key: K) => {
      const document = documents[key];
      return document === undefined || document === "none" ? undefined : (document as Described<K>);
    };
    const request = (
      key: string,
      of: {
        readonly method: string;
        readonly parameters?: ParametersFile | undefined;
        readonly times?: RpcFile["times"];
      },
      names: Names,
    ) => {
      const at: KeyPath = ["rpc", "documents", key];
      const method = this.#method([...at, "method"], of.method);
      if (method === null) return undefined;
      const made = this.#request(
        at,
        method,
        of.parameters,
        of.times ?? (names.bounds ? this.#file.times : undefined),
        names,
      );
      if (made !== null && names.run && made.places.run === undefined) {
        this.#context.fault(at, "does not name the run in its request", "Name the field in parameters.run.");
      }
      if (made !== null && key === "runs" && made.places.instance === undefined) {
        this.#context.fault(
          at,
          "does not name the instance in its request: each instance would get the runs of all",
          "Name the field in parameters.instance.",
        );
      }
      return made ?? undefined;
    };
    const instances = own("instances");
    const runs = own("runs");
    const storage = own("storage");
    const summary = own("summary");
    const resources = own("resources");
    const instance = own("instance");
    const instancesRequest = instances && request("instances", instances, ofNothing);
    const runsRequest = runs && request("runs", runs, ofInstance);
    const factsRequest = storage && request("storage", storage, { ...ofRun, bounds: true });
    const instanceRequest = instance && request("instance", instance, ofInstance);
    if (instances && instancesRequest) {
      this.#answerPaths("instances", instancesRequest, instances.list, {
        id: instances.id,
        runs: instances.runs,
      });
    }
    if (runs && runsRequest) {
      const { id, started, ended, status, final, storage_version } = runs;
      const paths = { id, started, ended, status, final, storage_version };
      this.#answerPaths("runs", runsRequest, runs.list, paths);
    }
    if (storage && factsRequest) {
      const { table, rows, first, last, final } = storage;
      this.#answerPaths("storage", factsRequest, storage.list, { table, rows, first, last, final });
    }
    if (instance && instanceRequest) {
      this.#answerPaths("instance", instanceRequest, undefined, { current_run: instance.current_run });
    }
    return {
      instances:
        instances && instancesRequest
          ? {
              ...{ ...instancesRequest, list: instances.list, id: instances.id ?? [] },
              ...{ runs: instances.runs, isWhole: instances.whole },
            }
          : undefined,
      runs:
        runs && runsRequest
          ? {
              ...{ ...runsRequest, list: runs.list, isWhole: runs.whole },
              ...this.#runFields(runs, runsRequest),
            }
          : undefined,
      facts:
        storage && factsRequest ? { ...factsRequest, ...this.#factFields(storage, factsRequest) } : undefined,
      summary: summary && request("summary", summary, ofRun),
      resources: resources && request("resources", resources, ofRun),
      instance:
        instance && instanceRequest ? { ...instanceRequest, currentRun: instance.current_run } : undefined,
      given: documents.given ?? {},
    };
  }

  #method(at: KeyPath, name: string): DescMethodUnary | null {
    const method = methodNamed(this.#registry, name);
    if ("message" in method) {
      this.#context.fault(at, method.message, method.hint);
      return null;
    }
    if (isUnary(method)) return method;
    this.#context.fault(
      at,
      "is a streaming method, which runvault cannot yet read",
      "Name a method that returns pages, or write an adapter.",
    );
    return null;
  }

  #request(
    at: KeyPath,
    method: DescMethodUnary,
    own: ParametersFile | undefined,
    times: RpcFile["times"],
    names: Names,
    table?: Table,
    token?: readonly string[],
  ): RpcRequest | null {
    const every = this.#file.parameters ?? {};
    const input = method.input;
    const context = this.#context;
    let isWrong = false;
    const placeOf = (key: string, path: readonly string[] | undefined, takes: readonly string[]) => {
      if (path === undefined) return undefined;
      const here = context.firstOf([...at, ...key.split(".")], ["rpc", ...key.split(".")], at);
      const field = this.#fieldAt(here, input, path);
      if (field === null) {
        isWrong = true;
        return undefined;
      }
      const kind = kindText(field);
      if (takes.includes(kind)) return path;
      isWrong = true;
      context.fault(
        here,
        `is ${kind} in ${input.typeName}, which runvault cannot yet send here`,
        `Possible types: ${takes.join(", ")}.`,
      );
      return undefined;
    };
    const said = (key: "instance" | "run" | "from" | "to" | "limit") => {
      const path = own?.[key] ?? (isAllowed(key, names) ? every[key] : undefined);
      return path === undefined || isNone(path) ? undefined : path;
    };
    const filters: Partial<Record<FilterName, readonly string[]>> = {};
    for (const filter of table?.filters ?? []) {
      const path = own?.filters?.[filter] ?? every.filters?.[filter];
      if (path === undefined || isNone(path)) continue;
      const place = placeOf(`parameters.filters.${filter}`, path, textKinds);
      if (place !== undefined) filters[filter] = place;
    }
    const from = placeOf("parameters.from", said("from"), timeKinds);
    const to = placeOf("parameters.to", said("to"), timeKinds);
    const request: RpcRequest = {
      method,
      places: {
        instance: placeOf("parameters.instance", said("instance"), textKinds),
        run: placeOf("parameters.run", said("run"), textKinds),
        from,
        to,
        limit: table === undefined ? undefined : placeOf("parameters.limit", said("limit"), countKinds),
        token: token === undefined ? undefined : placeOf("pages.send", token, ["string"]),
        filters,
      },
      fixed: (own?.fixed ?? (table === undefined ? undefined : every.fixed) ?? {}) as JsonObject,
      times: this.#times(at, input, from, to, times),
    };
    if (isWrong) return null;
    const fault = requestMessage(request, {});
    if (fault instanceof Uint8Array) return request;
    context.fault(
      context.firstOf([...at, "parameters", "fixed"], ["rpc", "parameters", "fixed"], at),
      `do not fit ${input.typeName}: ${fault.message}`,
      "Write them in protobuf's JSON form.",
    );
    return null;
  }

  #times(
    at: KeyPath,
    input: DescMessage,
    from: readonly string[] | undefined,
    to: readonly string[] | undefined,
    times: RpcFile["times"],
  ): RpcRequest["times"] {
    const here = this.#context.firstOf([...at, "times"], ["rpc", "times"], at);
    const ends = { from: times?.from ?? "inclusive", to: times?.to ?? "exclusive" } as const;
    const kinds = [from, to].flatMap((path) => {
      const found = path === undefined ? undefined : followPath(input, path);
      return found !== undefined && "chain" in found ? [found.chain.at(-1)!] : [];
    });
    const stamps = kinds.filter(({ message }) => isTimestamp(message));
    if (stamps.length > 0) {
      if (stamps.length < kinds.length) {
        this.#context.fault(here, "are a Timestamp and something else", "Name two fields of the same type.");
      }
      if (times?.unit !== undefined && times.unit.unit !== "rfc3339") {
        this.#context.fault(here, "have a unit, but a Timestamp has its own", "Remove unit.");
      }
      return { unit: "rfc3339", ...times?.unit, ...ends };
    }
    const written = times?.unit ?? { unit: "ns" };
    const { unit } = written;
    const isText = kinds.some((field) => kindText(field) === "string");
    if (unit === "rfc3339" && kinds.length > 0 && !isText) {
      this.#context.fault(
        here,
        "are RFC 3339, but the fields are integers",
        "Name the unit of the integers.",
      );
    }
    return { ...written, ...ends };
  }

  #layout(
    answer: DescMessage,
    rows: readonly string[],
    rowsAt: KeyPath,
    next: readonly string[] | undefined,
    nextAt: KeyPath,
  ): { readonly layout: PageLayout; readonly row: DescMessage } | null {
    const found = followPath(answer, rows, true);
    if (!("chain" in found)) {
      this.#context.fault(rowsAt, found.message, found.hint);
      return null;
    }
    const listAt = found.chain.findIndex(({ fieldKind }) => fieldKind === "list");
    const list = found.chain[listAt];
    const member = found.chain[listAt + 1];
    const last = found.chain.at(-1)!;
    const isOnce = found.chain.filter(({ fieldKind }) => fieldKind !== "message").length === 1;
    if (
      list?.message === undefined ||
      last.message === undefined ||
      !isOnce ||
      found.chain.length > listAt + 2
    ) {
      this.#context.fault(
        rowsAt,
        `is ${kindText(last)} in ${answer.typeName}, but rows must be a repeated message`,
        "Name the repeated field; if a row is one of several messages in it, add a dot and that message.",
      );
      return null;
    }
    let token: readonly DescField[] | undefined;
    if (next !== undefined) {
      const field = this.#fieldAt(nextAt, answer, next);
      if (field === null) return null;
      if (kindText(field) !== "string" || field.message !== undefined) {
        this.#context.fault(
          nextAt,
          `is ${kindText(field)} in ${answer.typeName}, but runvault can read only a string as token`,
          "Name a field that is a string.",
        );
        return null;
      }
      token = (followPath(answer, next) as { readonly chain: readonly DescField[] }).chain;
    }
    const siblings = member?.oneof?.fields ?? [];
    const leaf = {
      rows: list.number,
      member: member?.number,
      others: new Set(siblings.flatMap((field) => (field === member ? [] : [field.number]))),
    };
    return {
      layout: layoutOf(answer, leaf, found.chain.slice(0, listAt), token ?? []),
      row: member?.message ?? list.message,
    };
  }

  #answerPaths(
    key: string,
    { method }: RpcRequest,
    list: readonly string[] | undefined,
    paths: Readonly<Record<string, readonly string[] | undefined>>,
  ): void {
    const at: KeyPath = ["rpc", "documents", key];
    let entry: DescMessage | undefined = method.output;
    if (list !== undefined) {
      const field = this.#fieldAt([...at, "list"], method.output, list);
      if (field === null) return;
      if (field.fieldKind !== "list") {
        this.#context.fault(
          [...at, "list"],
          `is ${kindText(field)} in ${method.output.typeName}, not a list`,
          "Name a repeated field.",
        );
        return;
      }
      entry = field.message;
    }
    for (const [name, path] of Object.entries(paths)) {
      if (path === undefined || path.length === 0) continue;
      if (entry === undefined) {
        this.#context.fault(
          [...at, name],
          "is a path, but the list's entries are not messages",
          "Remove it.",
        );
      } else this.#fieldAt([...at, name], entry, path);
    }
  }

  #fieldAt(at: KeyPath, message: DescMessage, path: readonly string[]): DescField | null {
    const found = followPath(message, path);
    if ("chain" in found) return found.chain.at(-1)!;
    this.#context.fault(at, found.message, found.hint);
    return null;
  }

  /** The unit of times in a document: RFC 3339 if some are Timestamps. */
  #unit(
    key: string,
    { method }: RpcRequest,
    list: readonly string[] | undefined,
    paths: readonly (readonly string[] | undefined)[],
    unit: RunFields["unit"] | undefined,
  ): RunFields["unit"] {
    const inList = list === undefined ? undefined : followPath(method.output, list);
    const entry =
      inList === undefined ? method.output : "chain" in inList ? inList.chain.at(-1)!.message : undefined;
    const stamps = paths.map((path) => {
      const found = path === undefined || entry === undefined ? undefined : followPath(entry, path);
      return found !== undefined && "chain" in found ? isTimestamp(found.chain.at(-1)!.message) : undefined;
    });
    if (!stamps.includes(true)) return unit ?? "ns";
    const at: KeyPath = ["rpc", "documents", key];
    if (stamps.includes(false) || (unit ?? "rfc3339") !== "rfc3339") {
      this.#context.fault(
        this.#context.firstOf([...at, "unit"], at),
        "is not possible: one of the times is a Timestamp, which counts as rfc3339",
        "Remove unit, and name only Timestamps.",
      );
    }
    return "rfc3339";
  }

  #runFields(runs: Described<"runs">, request: RpcRequest): RunFields {
    return runFields(runs, this.#unit("runs", request, runs.list, [runs.started, runs.ended], runs.unit));
  }

  #factFields(storage: Described<"storage">, request: RpcRequest): FactFields {
    const at: KeyPath = ["rpc", "documents", "storage"];
    const { list, first, last } = storage;
    if (storage.table_parameter !== undefined) {
      this.#context.fault(
        [...at, "table_parameter"],
        "is given, but runvault cannot yet request the facts of one table over RPC",
        "Remove it if all tables come without it; otherwise remove storage.",
      );
    }
    const asked = {
      unit: this.#unit("storage", request, list, [first, last], storage.unit),
      takesBounds: request.places.from !== undefined && request.places.to !== undefined,
      noBounds: "its request has no fields for bounds",
    };
    return { ...factFields(at, storage, asked, this.#context), tableParameter: undefined };
  }
}

function isUnary(method: DescMethod): method is DescMethodUnary {
  return method.methodKind === "unary";
}

const textKinds = ["string"];
const countKinds = ["int32", "uint32", "int64", "uint64"];
const timeKinds = ["int64", "uint64", "sint64", "fixed64", "sfixed64", "string", "google.protobuf.Timestamp"];

function isAllowed(key: "instance" | "run" | "from" | "to" | "limit", names: Names): boolean {
  if (key === "instance" || key === "run") return names[key];
  return names.bounds;
}

function isNone(path: readonly string[]): boolean {
  return path.length === 1 && path[0] === "none";
}

/** A page's layout, where rows and token may be in nested messages. */
function layoutOf(
  { fields }: DescMessage,
  leaf: Pick<PageLayout, "rows" | "member" | "others">,
  toRows: readonly DescField[],
  toToken: readonly DescField[],
): PageLayout {
  const [rowsIn, ...rowsRest] = toRows;
  const [tokenIn, ...tokenRest] = toToken;
  const inside = new Map<number, PageLayout>();
  const isDeep = tokenIn !== undefined && tokenRest.length > 0;
  if (rowsIn !== undefined) {
    const shared = isDeep && tokenIn === rowsIn ? tokenRest : [];
    inside.set(rowsIn.number, layoutOf(rowsIn.message!, leaf, rowsRest, shared));
  }
  if (isDeep && tokenIn !== rowsIn) {
    inside.set(tokenIn.number, layoutOf(tokenIn.message!, nothing, [], tokenRest));
  }
  return {
    ...(rowsIn === undefined ? leaf : nothing),
    token: isDeep ? 0 : (tokenIn?.number ?? 0),
    inside,
    known: new Set(fields.map(({ number }) => number)),
  };
}

const nothing = { rows: 0, member: undefined, others: new Set<number>() };
