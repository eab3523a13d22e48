import type { DocumentKind, InstanceEntry, ListedRun, RunRef } from "../../model/source.ts";
import { builtInContract } from "../contract.ts";
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
import { listAnswer, wholeList } from "../paged-list.ts";
import { defaultRest } from "../profile/default-rest.ts";
import { absentCodes, checkedBounds, placeOfRun, requireExactRun, requireRows } from "../request-checks.ts";
import { askRest } from "./ask-rest.ts";
import { restCall } from "./rest-call.ts";
import { RestClient } from "./rest-client.ts";
import { writeBounds } from "./written-bounds.ts";

export type { GatewayOptions } from "../options.ts";

/**
 * Opens a gateway over REST; nothing is sent yet. Disposing it ends requests in progress (`interrupted`).
 * Throws `invalid_argument` for invalid options.
 *
 * - `runs`, `facts`: null if the gateway has no such route or answers 204; `facts` also for 409 `history_unavailable`
 *   and, with a notice, for any other 4xx except 400, 401 and 403.
 * - `document`: `summary`, `resources`, `facts` (of the whole run) and `instance` are single answers; `run` is the
 *   original bytes of the run's entry in /history/runs. Null where `facts` is, and for an unknown run or instance.
 * - `rows`: one GET; 204 means no rows. An empty run id, `current`, and a filter that does not apply to the table throw
 *   `invalid_argument` before anything is sent. An answer that breaks off throws `stream_cut` or `timeout`, and the rows
 *   before are complete; `malformed_row` for a body that cannot be decompressed: then none may be used.
 */
export function openRestGateway(options: GatewayOptions): Gateway {
  const session = new HttpSession(options);
  return { ...restSource(session), [Symbol.asyncDispose]: () => session[Symbol.asyncDispose]() };
}

const { base, documents: routes, tables } = defaultRest;
const { withChecksum, table: tableParameter } = builtInContract.parameters;

/**
 * The same over connections that the caller closes: the default profile's routes, whose documents are read more
 * strictly than a profile can say, and whose rows are passed on unchanged.
 */
export function restSource(session: HttpSession): GatewaySource {
  const { unknown } = session;
  const client = new RestClient(session, contractErrors(builtInContract));
  const ask = askRest(session, client, base);

  const runs = (instanceId: string, signal: AbortSignal | undefined) =>
    wholeList(
      "runs",
      ({ runId }: ListedRun) => runId,
      (page) =>
        ask(routes.runs, { instanceId, ...page }, { instance: instanceId }, signal, (bytes, here, headers) =>
          listAnswer((onAround) => readRuns(bytes, instanceId, here, unknown, onAround), headers),
        ),
    );

  function document(
    { instanceId, runId }: RunRef,
    kind: Exclude<DocumentKind, "run">,
    signal: AbortSignal | undefined,
  ): Promise<Uint8Array | null> {
    const run = { instanceId, runId };
    const route = kind === "instance" ? instanceRoute(instanceId) : routes[kind];
    return ask(route, run, placeOfRun(run), signal, async (bytes, here) => {
      switch (kind) {
        case "instance":
          readJson(bytes, here);
          break;
        case "facts":
          await readFacts(bytes, here, unknown);
          break;
        default:
          checkRunDocument(bytes, run, here);
      }
      return bytes;
    });
  }

  const documents = documentSource(session, {
    by: "REST",
    instances: (signal) =>
      wholeList(
        "instances",
        ({ instanceId }: InstanceEntry) => instanceId,
        (page) =>
          ask(routes.instances, page, {}, signal, (bytes, here, headers) =>
            listAnswer((onAround) => readInstances(bytes, here, unknown, onAround), headers),
          ),
      ),

    runs,

    currentRun: (instanceId, signal) =>
      ask(instanceRoute(instanceId), {}, { instance: instanceId }, signal, readCurrentRun),

    facts({ instanceId, runId }, bounds, { withHash, table }, signal) {
      const values = {
        ...{ instanceId, runId, bounds: writeBounds(routes.facts, checkedBounds(bounds)) },
        more: {
          ...(withHash === true ? { [withChecksum]: "true" } : {}),
          ...(table === undefined ? {} : { [tableParameter]: table }),
        },
      };
      return ask(routes.facts, values, placeOfRun({ instanceId, runId }), signal, (bytes, here) =>
        readFacts(bytes, here, unknown, table),
      );
    },

    document: async (run, kind, signal) =>
      kind === "run" ? ownText(await runs(run.instanceId, signal), run) : await document(run, kind, signal),
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
      const { instanceId, runId, limit } = request;
      const route = tables[table.name];
      const bounds = writeBounds(route, checkedBounds(request));
      const call = restCall(
        base,
        route,
        { instanceId, runId, bounds, limit, filters },
        route.rows.mediaTypes,
      );
      using scope = session.scope(request.signal);
      const place = {
        ...placeOfRun(request),
        table: table.name,
        url: session.address.label + call.path,
      };
      const run = { instanceId, runId };
      const onNoContent = () => session.noContent.note(run, table.name, "nothing");
      try {
        const rows = client.rows(call, { place, signal: scope.signal }, request.onBody, onNoContent);
        yield* session.noContent.noting(run, table.name, rows);
      } catch (thrown) {
        throw withinReach(thrown, place);
      }
    },
  };
}

/** Also for an id of dots alone, which a profile's path refuses. */
function instanceRoute(instanceId: string) {
  const { path } = routes.instance;
  return { ...routes.instance, path: path.replace("{instance}", () => encodeURIComponent(instanceId)) };
}
