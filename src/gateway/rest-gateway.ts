import { type ErrorCode, type ErrorPlace, RunvaultError } from "../model/error.ts";
import type {
  DocumentKind,
  HistorySource,
  InstanceEntry,
  RowRequest,
  RunEntry,
  RunRef,
  StorageFacts,
} from "../model/source.ts";
import { tableNamed } from "../model/table.ts";
import { int64Max, int64Min, type TimeBounds } from "../model/time.ts";
import { readAddress } from "./address.ts";
import { builtInContract, type GatewayContract } from "./contract.ts";
import { openDispatcher } from "./dispatcher.ts";
import { checkRunDocument, readFacts, readInstances, readJson, readRuns } from "./documents.ts";
import { checkOptions, type GatewayOptions } from "./options.ts";
import { openRequestGate } from "./request-gate.ts";
import { openRequestScope } from "./request-scope.ts";
import { type GatewayStats, RestClient } from "./rest-client.ts";

export type { GatewayOptions, RetryInfo } from "./options.ts";
export type { GatewayStats } from "./rest-client.ts";

/** A remote gateway over REST. */
export interface RestGateway extends HistorySource {
  readonly stats: GatewayStats;
}

/**
 * Opens a gateway over REST; nothing is sent yet. Disposing it ends what is under way (`interrupted`).
 * Throws `invalid_argument` for options that do not hold.
 *
 * - `runs`, `facts`: null where the gateway has no such route; `facts` also where it says 409 `history_unavailable`.
 * - `document`: `summary`, `resources`, `facts` (of the whole run) and `instance` are single answers; `run` is the
 *   whole /history/runs answer of the instance, since its bytes are kept as they came, and null where the run is not
 *   in it. Null for a missing route, for 409 `history_unavailable`, and for an instance the control plane has not.
 * - `rows`: one GET. An empty run id and `current` throw `invalid_argument` before anything is sent, as does a filter
 *   that does not apply to the table. A stop in mid-answer throws `stream_cut` or `timeout`: what came is whole up to
 *   there. `malformed_row` for a compressed body that does not decode: what came is not to be used.
 */
export function openRestGateway(
  options: GatewayOptions,
  contract: GatewayContract = builtInContract,
): RestGateway {
  const checked = checkOptions(options);
  const address = readAddress(checked.baseUrl);
  const gate = openRequestGate(checked.concurrency, checked.maxRequestsPerSecond);
  const dispatcher = openDispatcher(address, checked);
  const client = new RestClient(dispatcher, address, contract, checked, gate);
  const closing = new AbortController();
  const { paths, parameters } = contract;

  const placeOf = (path: string, place: ErrorPlace): ErrorPlace => ({ ...place, url: address.label + path });

  async function get<T>(
    path: string,
    place: ErrorPlace,
    signal: AbortSignal | undefined,
    read: (bytes: Uint8Array, place: ErrorPlace) => T,
  ): Promise<T> {
    using scope = openRequestScope([signal, closing.signal]);
    const here = placeOf(path, place);
    const bytes = await client.document(path, { place: here, signal: scope.signal });
    return read(bytes, here);
  }

  const ofInstance = (instanceId: string): [string, string][] => [[parameters.instance, instanceId]];
  const ofRun = ({ instanceId, runId }: RunRef): [string, string][] => [
    ...ofInstance(instanceId),
    [parameters.run, runId],
  ];
  const ofBounds = ({ from, to }: TimeBounds): [string, string][] => [
    ...(from === undefined ? [] : [[parameters.from, nanoseconds(from)] satisfies [string, string]]),
    ...(to === undefined ? [] : [[parameters.to, nanoseconds(to)] satisfies [string, string]]),
  ];

  const runsPath = (instanceId: string) => withQuery(paths.runs, ofInstance(instanceId));
  const instancePath = (instanceId: string) =>
    paths.instance.replace("{id}", () => encodeURIComponent(instanceId));

  function documentPath(run: RunRef, kind: DocumentKind): string {
    switch (kind) {
      case "instance":
        return instancePath(run.instanceId);
      case "run":
        return runsPath(run.instanceId);
      case "summary":
        return withQuery(paths.summary, ofRun(run));
      case "resources":
        return withQuery(paths.resources, ofRun(run));
      case "facts":
        return withQuery(paths.storage, ofRun(run));
    }
  }

  function checkDocument(
    run: RunRef,
    kind: DocumentKind,
    bytes: Uint8Array,
    here: ErrorPlace,
  ): Uint8Array | null {
    switch (kind) {
      case "instance":
        readJson(bytes, here);
        return bytes;
      case "run":
        return readRuns(bytes, run.instanceId, here).some(({ runId }) => runId === run.runId) ? bytes : null;
      case "facts":
        readFacts(bytes, here);
        return bytes;
      case "summary":
      case "resources":
        checkRunDocument(bytes, run, here);
        return bytes;
    }
  }

  return {
    label: address.label,
    stats: client.stats,

    instances: (signal): Promise<readonly InstanceEntry[]> =>
      get(withQuery(paths.instances, []), {}, signal, readInstances),

    async runs(instanceId, signal): Promise<readonly RunEntry[] | null> {
      requireInstance(instanceId);
      const place = { instance: instanceId };
      return await nullOn(["route_not_found"], () =>
        get(runsPath(instanceId), place, signal, (bytes, here) => readRuns(bytes, instanceId, here)),
      );
    },

    async facts(run, bounds, signal): Promise<StorageFacts | null> {
      requireExactRun(run);
      const path = withQuery(paths.storage, [...ofRun(run), ...ofBounds(bounds)]);
      return await nullOn(["route_not_found", "history_unavailable"], () =>
        get(path, placeOfRun(run), signal, readFacts),
      );
    },

    async document(run, kind, signal): Promise<Uint8Array | null> {
      requireExactRun(run);
      const absent: ErrorCode[] = ["route_not_found", "history_unavailable"];
      if (kind === "instance") absent.push("instance_not_found");
      return await nullOn(absent, () =>
        get(documentPath(run, kind), placeOfRun(run), signal, (bytes, here) =>
          checkDocument(run, kind, bytes, here),
        ),
      );
    },

    async *rows(request): AsyncGenerator<Uint8Array, undefined> {
      requireExactRun(request);
      const { table, filters } = requireRows(request);
      const path = withQuery(paths.tables[table.name], [
        ...ofRun(request),
        ...ofBounds(request),
        ...(request.limit === undefined
          ? []
          : [[parameters.limit, String(request.limit)] satisfies [string, string]]),
        ...filters.map(([name, value]): [string, string] => [parameters.filters[name], value]),
      ]);
      using scope = openRequestScope([request.signal, closing.signal]);
      const place = placeOf(path, { ...placeOfRun(request), table: table.name });
      yield* client.rows(path, { place, signal: scope.signal });
    },

    async [Symbol.asyncDispose]() {
      closing.abort(new RunvaultError("interrupted", "the connection to the gateway was closed"));
      await dispatcher.destroy();
    },
  };
}

async function nullOn<T>(codes: readonly ErrorCode[], ask: () => Promise<T>): Promise<T | null> {
  try {
    return await ask();
  } catch (thrown) {
    if (thrown instanceof RunvaultError && codes.includes(thrown.code)) return null;
    throw thrown;
  }
}

function requireExactRun(run: RunRef): void {
  requireInstance(run.instanceId);
  if (run.runId !== "" && run.runId !== "current") return;
  throw new RunvaultError(
    "invalid_argument",
    run.runId === "" ? "the run id is empty" : "the word current is not a run id",
    { place: { instance: run.instanceId }, hint: "Name an exact run id; the gateway's runs are listed." },
  );
}

function requireInstance(instanceId: string): void {
  if (instanceId === "") throw new RunvaultError("invalid_argument", "the instance id is empty");
}

function requireRows({ table: name, limit, filters }: RowRequest) {
  const table = tableNamed(name);
  if (limit !== undefined && !(Number.isSafeInteger(limit) && limit > 0)) {
    throw new RunvaultError("invalid_argument", `limit is not a positive integer: ${limit}`);
  }
  const given = Object.entries(filters ?? {}) as [keyof NonNullable<typeof filters>, string | undefined][];
  const set = given.filter((pair): pair is [(typeof pair)[0], string] => pair[1] !== undefined);
  for (const [filter, value] of set) {
    if (table.filters.includes(filter) && value !== "") continue;
    const message =
      value === "" ? `the filter ${filter} is empty` : `the filter ${filter} does not apply to ${name}`;
    throw new RunvaultError("invalid_argument", message, {
      hint: `Filters of ${name} are ${table.filters.join(", ")}.`,
    });
  }
  return { table, filters: set };
}

function placeOfRun({ instanceId, runId }: RunRef): ErrorPlace {
  return { instance: instanceId, run: runId };
}

function nanoseconds(value: bigint): string {
  if (value >= int64Min && value <= int64Max) return value.toString();
  throw new RunvaultError("invalid_argument", `time outside the range of 64-bit nanoseconds: ${value}`);
}

function withQuery(path: string, parameters: readonly (readonly [string, string])[]): string {
  if (parameters.length === 0) return path;
  return `${path}?${parameters.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join("&")}`;
}
