import type { ErrorCode, ErrorPlace } from "../../model/error.ts";
import { RunvaultError } from "../../model/error.ts";
import type { Table, TableName } from "../../model/profile/table.ts";
import type {
  DocumentKind,
  InstanceEntry,
  ListedRun,
  RunEntry,
  RunListing,
  RunRef,
  StorageFacts,
} from "../../model/source.ts";
import type { TimeBounds } from "../../model/time.ts";
import { ownText, readJson, withoutText } from "../documents.ts";
import type { GatewayLists, GatewaySource } from "../gateway.ts";
import { withGiven } from "../given-instances.ts";
import type { ErrorReading } from "../http/error-answer.ts";
import { withinReach } from "../http/error-reach.ts";
import type { HttpSession } from "../http/http-session.ts";
import { nullOnAbsence, nullOnRefusal } from "../optional-answer.ts";
import { optionalFacts } from "../optional-facts.ts";
import type { ErrorWords, FactFields, Profile, RestProfile, RestRequest } from "../profile/profile.ts";
import { RowNormaliser } from "../profile/rows/row-normaliser.ts";
import { absentCodes, placeOfRun, requireExactRun, requireInstance, requireRows } from "../request-checks.ts";
import type { ListedIds } from "./filter-probe.ts";
import { currentRunIn, listedFacts, listedInstances, listedRuns } from "./profile-documents.ts";
import { type CallValues, restCall } from "./rest-call.ts";
import { RestClient } from "./rest-client.ts";
import { routeTraitsOf } from "./route-traits-of.ts";
import { profileRows, type RouteKnowledge, routeOf } from "./row-source.ts";
import { writeBounds } from "./written-bounds.ts";

/** How a gateway says that it has nothing of a document. */
const absentDocument: readonly ErrorCode[] = [...absentCodes, "resource_not_found"];

/** Media types of documents. */
const json = ["application/json"];

/**
 * A gateway over REST as a profile describes it, over connections that are another's to close. What the profile does not
 * name is not asked for: lists are what it gives by name then, documents and facts are null, rows `route_not_found`.
 *
 * `rows` throws `not_filtered` where the gateway gives rows of runs that cannot exist.
 *
 * `lists` are the gateway's over whichever transport, where this is not all of it.
 */
export function profileRestSource(
  session: HttpSession,
  profile: Profile,
  rest: RestProfile,
  lists?: () => GatewayLists,
): GatewaySource {
  const { address } = session;
  const { documents } = rest;
  const client = new RestClient(session, errorReading(rest.errors));
  const knowledge = new Map<TableName, RouteKnowledge>();
  const normalisers = new Map<string, RowNormaliser>();
  const listedIds = new Map<string, Promise<ListedIds | undefined>>();
  /** Instances of which it was shown that the list of runs is theirs alone. */
  let runsAreFiltered = false;

  async function get<T>(
    request: RestRequest,
    values: CallValues,
    place: ErrorPlace,
    signal: AbortSignal | undefined,
    read: (bytes: Uint8Array, place: ErrorPlace) => T | Promise<T>,
  ): Promise<T> {
    using scope = session.scope(signal);
    const call = restCall(rest.base, request, values, json);
    const here = { ...place, url: address.label + call.path };
    try {
      return await read(await client.document(call, { place: here, signal: scope.signal }), here);
    } catch (thrown) {
      throw withinReach(thrown, place);
    }
  }

  async function instances(signal?: AbortSignal): Promise<readonly InstanceEntry[]> {
    const route = documents.instances;
    const listed =
      route === undefined
        ? []
        : await get(route, {}, {}, signal, (bytes, here) => listedInstances(bytes, route, here));
    return withGiven(listed, documents.given);
  }

  async function runs(instanceId: string, signal?: AbortSignal): Promise<readonly ListedRun[] | null> {
    requireInstance(instanceId);
    const route = documents.runs;
    if (route === undefined) return null;
    const place = { instance: instanceId };
    return await nullOnAbsence(["route_not_found"], async () => {
      const listed = await get(route, { instanceId }, place, signal, (bytes, here) =>
        listedRuns(bytes, instanceId, route, here),
      );
      if (listed.length > 0) await requireOwnRuns(route, place, signal);
      return listed;
    });
  }

  /** Throws `not_filtered` where the list of runs is the same whatever instance it is asked for. */
  async function requireOwnRuns(
    route: NonNullable<typeof documents.runs>,
    place: ErrorPlace & { readonly instance: string },
    signal: AbortSignal | undefined,
  ): Promise<void> {
    if (runsAreFiltered) return;
    const parameter = route.path.includes("{instance}") ? "{instance}" : route.parameters.instance;
    const isOnlyOne = async () => (await (lists?.() ?? { instances }).instances(signal)).length <= 1;
    const instanceId = `${place.instance}-runvault-none`;
    const ofNone =
      parameter === undefined
        ? null
        : await nullOnAbsence(noInstance, () =>
            get(route, { instanceId }, { instance: instanceId }, signal, (bytes, here) =>
              listedRuns(bytes, instanceId, route, here),
            ),
          );
    const isHeeded = parameter !== undefined && (ofNone ?? []).length === 0;
    if (!isHeeded && !(await isOnlyOne())) {
      throw new RunvaultError(
        "not_filtered",
        `the route ${route.path} lists the same runs for every instance: ${parameter === undefined ? "nothing in its request names one" : `it ignores ${parameter}`}`,
        { place, hint: "Correct the profile: runs would be taken for those of another instance." },
      );
    }
    runsAreFiltered = true;
  }

  const listing: RunListing = {
    by: "REST",
    instances,
    runs,
    async currentRun(instanceId, signal): Promise<string | null> {
      requireInstance(instanceId);
      const route = documents.instance;
      const path = route?.currentRun;
      if (route === undefined || path === undefined) return null;
      return await nullOnAbsence(["route_not_found", "instance_not_found"], () =>
        get(route, { instanceId }, { instance: instanceId }, signal, (bytes, here) =>
          currentRunIn(bytes, path, here),
        ),
      );
    },
  };

  /** The ids that the gateway lists, asked for once an instance; undefined where a list fails. */
  function listed(instanceId: string, signal: AbortSignal): Promise<ListedIds | undefined> {
    const before = listedIds.get(instanceId);
    if (before !== undefined) return before;
    const asked = askListed(instanceId, signal);
    listedIds.set(instanceId, asked);
    asked.catch(() => listedIds.delete(instanceId));
    return asked;
  }

  async function askListed(instanceId: string, signal: AbortSignal): Promise<ListedIds | undefined> {
    try {
      const all = lists?.() ?? { instances, runs };
      const entries = await all.instances(signal);
      const named = entries.find((entry) => entry.instanceId === instanceId)?.runIds ?? [];
      const own = (await all.runs(instanceId, signal)) ?? [];
      return {
        instances: entries.map((entry) => entry.instanceId),
        runs: [...new Set([...named, ...own.map(({ runId }) => runId)])],
      };
    } catch (thrown) {
      signal.throwIfAborted();
      // a list that fails names nobody, and proves nothing either
      if (thrown instanceof RunvaultError) return undefined;
      throw thrown;
    }
  }

  /** A run's normaliser is kept while the run is asked for: making one takes longer than an answer. */
  function normaliserOf(table: Table, run: RunRef): RowNormaliser | undefined {
    const map = profile.maps[table.name];
    if (map === undefined) return undefined;
    const key = JSON.stringify([table.name, run.instanceId, run.runId]);
    const normaliser =
      normalisers.get(key) ??
      new RowNormaliser(table, map, run, {
        onUnknownField: (path) =>
          session.notices.tell(
            `${table.name} has the field ${shownField(path)}, which no column takes${map.fields === "keep" ? ": it is kept in extra" : ""}`,
          ),
      });
    normalisers.delete(key);
    normalisers.set(key, normaliser);
    const [oldest] = normalisers.keys();
    if (normalisers.size > mostNormalisers && oldest !== undefined) normalisers.delete(oldest);
    return normaliser;
  }

  async function factsOf(
    route: RestRequest & FactFields,
    run: RunRef,
    bounds: TimeBounds,
    table: TableName | undefined,
    signal: AbortSignal | undefined,
  ): Promise<StorageFacts> {
    const { instanceId, runId } = run;
    const values = { instanceId, runId, bounds: writeBounds(route, bounds) };
    const ask = (more: Readonly<Record<string, string>>, of: TableName | undefined) =>
      get(route, { ...values, more }, placeOfRun(run), signal, (bytes, place) => ({
        bytes,
        table: of,
        place,
      }));
    const { tableParameter } = route;
    if (tableParameter === undefined) return await listedFacts([await ask({}, table)], route);
    const answers = [];
    for (const name of table === undefined ? profile.described : [table]) {
      const answer = await nullOnAbsence(absentDocument, () =>
        ask({ [tableParameter]: wireName(route, name) }, name),
      );
      if (answer !== null) answers.push(answer);
    }
    return await listedFacts(answers, route);
  }

  async function documentOf(
    run: RunRef,
    kind: DocumentKind,
    signal: AbortSignal | undefined,
  ): Promise<Uint8Array | null> {
    if (kind === "run") return ownText(await runs(run.instanceId, signal), run);
    const route = documents[kind];
    if (route === undefined) return null;
    if (kind === "facts") return (await factsOf(documents.facts!, run, {}, undefined, signal)).text ?? null;
    const { instanceId, runId } = run;
    return await get(route, { instanceId, runId }, placeOfRun(run), signal, (bytes, here) => {
      readJson(bytes, here);
      return bytes;
    });
  }

  return {
    label: address.label,
    now: () => session.now(),
    stats: session.stats,
    retriesOf: (run) => session.retriesOf(run),
    described: { tables: profile.described, none: profile.none, by: profile.name },
    traits: (table) => {
      const route = rest.tables[table];
      return route === undefined ? undefined : routeTraitsOf(table, route, profile);
    },
    listings: async () => [listing],
    instances,
    runs: async (instanceId, signal): Promise<readonly RunEntry[] | null> =>
      await withoutText(await runs(instanceId, signal)),

    async facts(run, bounds, signal, asked = {}): Promise<StorageFacts | null> {
      requireExactRun(run);
      const route = documents.facts;
      const isBounded = bounds.from !== undefined || bounds.to !== undefined;
      if (route === undefined || (isBounded && !heedsBounds(route, bounds))) return null;
      return await optionalFacts({ table: asked.table }, session.notices, ({ table }) =>
        factsOf(route, run, bounds, table, signal),
      );
    },

    async document(run, kind, signal): Promise<Uint8Array | null> {
      requireExactRun(run);
      const codes = kind === "instance" ? noInstance : absentDocument;
      return await nullOnRefusal(`the ${kind} document`, codes, session.notices, () =>
        documentOf(run, kind, signal),
      );
    },

    async *rows(request): AsyncGenerator<Uint8Array, undefined> {
      requireExactRun(request);
      const { table, filters } = requireRows(request);
      const { instanceId, runId } = request;
      const route = routeOf(profile, rest, table.name, request);
      const traits = routeTraitsOf(table.name, route, profile);
      for (const [filter] of filters) requireTaken(filter, route, table.name);
      const known = knowledge.get(table.name) ?? {
        isFiltered: traits.namesRun && traits.namesInstance,
        filtered: new Set(),
        namesNext: !["cursor", "address", "link"].includes(route.pages.by),
      };
      knowledge.set(table.name, known);
      using scope = session.scope(request.signal);
      const { path } = restCall(rest.base, route, { instanceId, runId }, []);
      const place = { ...placeOfRun(request), table: table.name, url: address.label + path };
      const source = {
        session,
        client,
        rest,
        route,
        table,
        traits,
        listed,
        known,
        normaliserOf: (run: RunRef) => normaliserOf(table, run),
      };
      try {
        yield* profileRows(source, request, filters, place, scope.signal);
      } catch (thrown) {
        throw withinReach(thrown, place);
      }
    },
  };

  function requireTaken(filter: string, route: RestRequest, table: TableName): void {
    if (Object.hasOwn(route.parameters.filters, filter)) return;
    throw new RunvaultError("invalid_argument", `the gateway's ${table} cannot be filtered by ${filter}`, {
      place: { table },
      hint: `The profile ${profile.name} names no parameter for it.`,
    });
  }
}

/** Runs and tables that are asked for at a time, and some more. */
const mostNormalisers = 32;

/** A name that is shown as it is; any other may be anything, a secret included. */
function shownField(path: readonly string[]): string {
  const name = path.join(".");
  return /^[\w.-]{1,80}$/.test(name) ? name : "with an odd name";
}

const noInstance: readonly ErrorCode[] = [
  ...absentDocument,
  "instance_not_found",
  "run_not_found",
  "refused",
];

/** Whether facts are of these bounds, and not of the whole run or, for their unit, of somewhat more. */
function heedsBounds(route: RestRequest & FactFields, bounds: TimeBounds): boolean {
  const { clipFrom, clipTo } = writeBounds(route, bounds);
  return route.heedBounds && clipFrom === undefined && clipTo === undefined;
}

function wireName({ tableWords }: FactFields, table: TableName): string {
  return Object.keys(tableWords).find((word) => tableWords[word] === table) ?? table;
}

/** What the profile says of errors; a code that it does not name goes by the status. */
function errorReading({ code, codes }: ErrorWords): ErrorReading {
  return {
    code,
    meaning: (_status, word) => (Object.hasOwn(codes, word) ? codes[word] : undefined),
    isKnown: (word) => Object.hasOwn(codes, word),
  };
}
