import type { ErrorPlace } from "../../model/error.ts";
import type { DocumentKind, RunRef } from "../../model/source.ts";
import type { TimeBounds } from "../../model/time.ts";
import { builtInContract, type GatewayContract } from "../contract.ts";
import { documentSource } from "../document-source.ts";
import {
  checkRunDocument,
  ownText,
  readCurrentRun,
  readFacts,
  readInstances,
  readJson,
  readRuns,
} from "../documents.ts";
import type { Gateway, GatewaySource } from "../gateway.ts";
import { contractErrors } from "../http/error-answer.ts";
import { withinReach } from "../http/error-reach.ts";
import { HttpSession } from "../http/http-session.ts";
import type { GatewayOptions } from "../options.ts";
import { absentCodes, checkedTime, placeOfRun, requireExactRun, requireRows } from "../request-checks.ts";
import type { UnknownFields } from "../rpc/unknown-fields.ts";
import { RestClient } from "./rest-client.ts";

export type { GatewayOptions } from "../options.ts";

/**
 * Opens a gateway over REST; nothing is sent yet. Disposing it ends what is under way (`interrupted`).
 * Throws `invalid_argument` for options that do not hold.
 *
 * - `runs`, `facts`: null where the gateway has no such route or answers 204; `facts` also where it says 409
 *   `history_unavailable` or, which is told, refuses the request by another 4xx but 400, 401 and 403.
 * - `document`: `summary`, `resources`, `facts` (of the whole run) and `instance` are single answers; `run` is the
 *   run's own entry in /history/runs, its bytes as they came, and null where the run is not in it. Null as `facts` is,
 *   and for an instance the control plane has not.
 * - `rows`: one GET, of which 204 is an answer without rows. An empty run id and `current` throw `invalid_argument`
 *   before anything is sent, as does a filter
 *   that does not apply to the table. A stop in mid-answer throws `stream_cut` or `timeout`: what came is whole up to
 *   there. `malformed_row` for a compressed body that does not decode: what came is not to be used.
 */
export function openRestGateway(
  options: GatewayOptions,
  contract: GatewayContract = builtInContract,
): Gateway {
  const session = new HttpSession(options);
  return { ...restSource(session, contract), [Symbol.asyncDispose]: () => session[Symbol.asyncDispose]() };
}

/** The same over connections that are another's to close. */
export function restSource(session: HttpSession, contract: GatewayContract): GatewaySource {
  const { address } = session;
  const client = new RestClient(session, contractErrors(contract));
  const { paths, parameters } = contract;

  const placeOf = (path: string, place: ErrorPlace): ErrorPlace => ({ ...place, url: address.label + path });

  async function get<T>(
    path: string,
    place: ErrorPlace,
    signal: AbortSignal | undefined,
    read: (bytes: Uint8Array, place: ErrorPlace, unknown: UnknownFields) => T | Promise<T>,
  ): Promise<T> {
    using scope = session.scope(signal);
    const here = placeOf(path, place);
    try {
      return await read(
        await client.document(
          { method: "GET", path, accept: [contract.mediaTypes.document] },
          { place: here, signal: scope.signal },
        ),
        here,
        session.unknown,
      );
    } catch (thrown) {
      throw withinReach(thrown, place);
    }
  }

  const ofInstance = (instanceId: string): [string, string][] => [[parameters.instance, instanceId]];
  const ofRun = ({ instanceId, runId }: RunRef): [string, string][] => [
    ...ofInstance(instanceId),
    [parameters.run, runId],
  ];
  const ofBounds = ({ from, to }: TimeBounds): [string, string][] => [
    ...(from === undefined
      ? []
      : [[parameters.from, checkedTime(from).toString()] satisfies [string, string]]),
    ...(to === undefined ? [] : [[parameters.to, checkedTime(to).toString()] satisfies [string, string]]),
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

  async function checkDocument(
    run: RunRef,
    kind: DocumentKind,
    bytes: Uint8Array,
    here: ErrorPlace,
  ): Promise<Uint8Array | null> {
    switch (kind) {
      case "instance":
        readJson(bytes, here);
        return bytes;
      case "run":
        return ownText(await readRuns(bytes, run.instanceId, here, session.unknown), run);
      case "facts":
        await readFacts(bytes, here, session.unknown);
        return bytes;
      case "summary":
      case "resources":
        checkRunDocument(bytes, run, here);
        return bytes;
    }
  }

  const documents = documentSource(session, {
    by: "REST",
    instances: (signal) => get(withQuery(paths.instances, []), {}, signal, readInstances),

    runs: (instanceId, signal) =>
      get(runsPath(instanceId), { instance: instanceId }, signal, (bytes, here) =>
        readRuns(bytes, instanceId, here, session.unknown),
      ),

    currentRun: (instanceId, signal) =>
      get(instancePath(instanceId), { instance: instanceId }, signal, readCurrentRun),

    facts(run, bounds, { withHash, table }, signal) {
      const path = withQuery(paths.storage, [
        ...ofRun(run),
        ...ofBounds(bounds),
        ...(withHash === true ? [[parameters.withChecksum, "true"] satisfies [string, string]] : []),
        ...(table === undefined ? [] : [[parameters.table, table] satisfies [string, string]]),
      ]);
      return get(path, placeOfRun(run), signal, (bytes, here, unknown) =>
        readFacts(bytes, here, unknown, table),
      );
    },

    document: (run, kind, signal) =>
      get(documentPath(run, kind), placeOfRun(run), signal, (bytes, here) =>
        checkDocument(run, kind, bytes, here),
      ),
    absent: {
      currentRun: ["route_not_found", "instance_not_found"],
      document: absentCodes,
      instance: [...absentCodes, "instance_not_found"],
    },
  });

  return {
    ...documents,

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
      using scope = session.scope(request.signal);
      const place = placeOf(path, { ...placeOfRun(request), table: table.name });
      try {
        yield* client.rows(
          { method: "GET", path, accept: [contract.mediaTypes.rows] },
          { place, signal: scope.signal },
        );
      } catch (thrown) {
        throw withinReach(thrown, place);
      }
    },
  };
}

function withQuery(path: string, parameters: readonly (readonly [string, string])[]): string {
  if (parameters.length === 0) return path;
  return `${path}?${parameters.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join("&")}`;
}
