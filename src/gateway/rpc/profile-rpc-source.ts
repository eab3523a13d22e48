import type { ErrorCode, ErrorPlace } from "../../model/error.ts";
import { RunvaultError } from "../../model/error.ts";
import { hasDerivedSeq } from "../../model/profile/row-map.ts";
import type { FilterName, Table, TableName } from "../../model/profile/table.ts";
import type { RouteTraits } from "../../model/route-traits.ts";
import type {
  DocumentKind,
  InstanceEntry,
  ListedRun,
  RowRequest,
  RunEntry,
  RunListing,
  RunRef,
  StorageFacts,
} from "../../model/source.ts";
import type { TimeBounds } from "../../model/time.ts";
import { ownText, withoutText } from "../documents.ts";
import type { GatewayLists, GatewaySource } from "../gateway.ts";
import { withGiven } from "../given-instances.ts";
import { withinReach } from "../http/error-reach.ts";
import type { HttpSession } from "../http/http-session.ts";
import type { RowRate } from "../http/row-rate.ts";
import { nullOnAbsence, nullOnRefusal } from "../optional-answer.ts";
import { optionalFacts } from "../optional-facts.ts";
import type { Profile, RestRequest, RpcProfile, RpcRequest, RpcRoute } from "../profile/profile.ts";
import { withLikelyTimes } from "../profile/rows/likely-times.ts";
import { type RequestValues, requestMessage } from "../profile/rpc/request-message.ts";
import {
  absentCodes,
  checkedTime,
  placeOfRun,
  requireExactRun,
  requireInstance,
  requireRows,
} from "../request-checks.ts";
import { ignoresParameter, impossibleRuns, type ListedIds } from "../rest/filter-probe.ts";
import { clipRows } from "../rest/pages/clip-rows.ts";
import { checkJoins, PageEnds } from "../rest/pages/page-joins.ts";
import { takeRows } from "../rest/pages/take-rows.ts";
import { currentRunIn, listedFacts, listedInstances, listedRuns } from "../rest/profile-documents.ts";
import { writeBounds } from "../rest/written-bounds.ts";
import { foreignRows } from "./foreign-rows.ts";
import { type PageSource, readPages } from "./page-reader.ts";
import { PageSize } from "./page-size.ts";
import { profileRpcClient } from "./profile-rpc-client.ts";
import { documentBytes } from "./rpc-documents.ts";
import { methodPath } from "./rpc-exchange.ts";
import { type SeenPages, seenByBytes } from "./seen-pages.ts";

/** How a gateway says that it has nothing of a document. */
const absentDocument: readonly ErrorCode[] = [...absentCodes, "resource_not_found"];
const noInstance: readonly ErrorCode[] = [
  ...absentDocument,
  "instance_not_found",
  "run_not_found",
  "refused",
];

/** How a gateway says that a run is not there, or that no such run can be. */
const notThere: ReadonlySet<ErrorCode> = new Set([
  "run_not_found",
  "instance_not_found",
  "resource_not_found",
  "history_unavailable",
  "history_identity_conflict",
  "gone",
  "refused",
]);

/** What a table's answers taught. */
interface Learnt {
  readonly size: PageSize;
  /** Runs that cannot exist were asked for in the form that gave rows of one that does, and gave none. */
  isFiltered: boolean;
  /** Runs of which it was shown that the method does not take those of a like name for them. */
  readonly filtered: Set<string>;
}

interface Reading {
  readonly place: ErrorPlace;
  readonly signal: AbortSignal;
  readonly rate: RowRate;
}

/** One answer's rows as they are asked for. */
interface Asked extends TimeBounds {
  readonly run: RunRef;
  readonly filters: readonly (readonly [FilterName, string])[];
}

/**
 * A gateway over RPC as a profile describes it, over connections that are another's to close. What the profile does not
 * name is not asked for: lists are what it gives by name then, documents and facts are null, rows `route_not_found`.
 *
 * `rows` throws `not_filtered` where the gateway gives rows of runs that cannot exist, and `stream_cut` where the pages
 * stop making sense.
 *
 * `lists` are the gateway's over whichever transport, where this is not all of it.
 */
export function profileRpcSource(
  session: HttpSession,
  profile: Profile,
  rpc: RpcProfile,
  lists?: () => GatewayLists,
): GatewaySource {
  const { address } = session;
  const { documents } = rpc;
  const { client, rules, prefix } = profileRpcClient(session, rpc);
  const learnt = new Map<TableName, Learnt>();
  const listedIds = new Map<string, Promise<ListedIds | undefined>>();
  /** Whether it was shown that a list of runs is of one instance alone. */
  let runsAreFiltered = false;

  const placeOf = (request: RpcRequest, place: ErrorPlace): ErrorPlace => ({
    ...place,
    url: address.origin + prefix + methodPath(request.method),
  });

  async function ask<T>(
    request: RpcRequest,
    values: RequestValues,
    place: ErrorPlace,
    signal: AbortSignal | undefined,
    read: (bytes: Uint8Array, place: ErrorPlace) => T | Promise<T>,
  ): Promise<T> {
    using scope = session.scope(signal);
    const here = placeOf(request, place);
    try {
      const { method } = request;
      const answer = await client.document(method, messageOf(request, values, here), {
        place: here,
        signal: scope.signal,
      });
      return await read(documentBytes(method.output, answer, "foreign"), here);
    } catch (thrown) {
      throw withinReach(thrown, place);
    }
  }

  async function instances(signal?: AbortSignal): Promise<readonly InstanceEntry[]> {
    const route = documents.instances;
    const listed =
      route === undefined
        ? []
        : await ask(route, {}, {}, signal, (bytes, here) => listedInstances(bytes, route, here));
    return withGiven(listed, documents.given);
  }

  async function runs(instanceId: string, signal?: AbortSignal): Promise<readonly ListedRun[] | null> {
    requireInstance(instanceId);
    const route = documents.runs;
    if (route === undefined) return null;
    const list = (id: string) =>
      ask(route, { instanceId: id }, { instance: id }, signal, (bytes, here) =>
        listedRuns(bytes, id, route, here),
      );
    return await nullOnAbsence(["route_not_found"], async () => {
      const listed = await list(instanceId);
      if (listed.length === 0 || runsAreFiltered) return listed;
      const ofNone = await nullOnAbsence(noInstance, () => list(`${instanceId}-runvault-none`));
      const all = lists?.() ?? { instances };
      if ((ofNone ?? []).length > 0 && (await all.instances(signal)).length > 1) {
        const field = route.places.instance?.join(".");
        throw new RunvaultError(
          "not_filtered",
          `${route.method.name} lists the same runs for every instance: ${field === undefined ? "nothing in its request names one" : `it ignores ${field}`}`,
          {
            place: placeOf(route, { instance: instanceId }),
            hint: "Correct the profile: runs would be taken for those of another instance.",
          },
        );
      }
      runsAreFiltered = true;
      return listed;
    });
  }

  const listing: RunListing = {
    by: "RPC",
    instances,
    runs,
    async currentRun(instanceId, signal): Promise<string | null> {
      requireInstance(instanceId);
      const route = documents.instance;
      const path = route?.currentRun;
      if (route === undefined || path === undefined) return null;
      return await nullOnAbsence(["route_not_found", "instance_not_found"], () =>
        ask(route, { instanceId }, { instance: instanceId }, signal, (bytes, here) =>
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

  async function factsOf(
    run: RunRef,
    bounds: TimeBounds,
    table: TableName | undefined,
    signal: AbortSignal | undefined,
  ): Promise<StorageFacts> {
    const route = documents.facts!;
    const { instanceId, runId } = run;
    const values = { instanceId, runId, bounds: writeBounds(boundsForm(route), bounds) };
    return await ask(route, values, placeOfRun(run), signal, (bytes, place) =>
      listedFacts([{ bytes, table, place }], route),
    );
  }

  async function documentOf(
    run: RunRef,
    kind: DocumentKind,
    signal: AbortSignal | undefined,
  ): Promise<Uint8Array | null> {
    if (kind === "run") return ownText(await runs(run.instanceId, signal), run);
    const route = documents[kind];
    if (route === undefined) return null;
    if (kind === "facts") return (await factsOf(run, {}, undefined, signal)).text ?? null;
    const { instanceId, runId } = run;
    return await ask(route, { instanceId, runId }, placeOfRun(run), signal, (bytes) => bytes);
  }

  function learntOf(table: TableName, route: RpcRoute, traits: RouteTraits): Learnt {
    const known = learnt.get(table) ?? {
      size: new PageSize(rules.pageBytes, route.largestLimit),
      isFiltered: traits.namesRun && traits.namesInstance,
      filtered: new Set(),
    };
    learnt.set(table, known);
    return known;
  }

  function pagesOf(
    table: Table,
    route: RpcRoute,
    asked: Asked,
    { size }: Learnt,
    place: ErrorPlace,
  ): { readonly source: PageSource; readonly rows: ReturnType<typeof foreignRows> } {
    const { run, filters } = asked;
    const rows = foreignRows(table, route.map, route.row, run, (path) => {
      session.notices.tell(`rows of ${table.name} have a field that no column takes: ${path.join(".")}`);
    });
    const bounds = writeBounds(boundsForm(route), asked);
    return {
      rows,
      source: {
        table,
        method: route.method,
        layout: route.layout,
        size,
        seen: seenByBytes(!hasDerivedSeq(route.map)),
        transcoder: rows.transcoder,
        isSized: route.places.limit !== undefined,
        // a row may be as good as nothing here
        leastRowBytes: 4,
        request: (limit, token) => messageOf(route, { ...run, bounds, filters, limit, token }, place),
      },
    };
  }

  /** Rows as they come, page by page; ahead of the first ones it is shown that they are this run's alone. */
  async function* pagedRows(
    table: Table,
    route: RpcRoute,
    asked: Asked,
    reading: Reading,
    limit: number,
  ): AsyncGenerator<Uint8Array, undefined> {
    const known = learntOf(table.name, route, traitsOf(route, profile));
    const { source, rows } = pagesOf(table, route, asked, known, reading.place);
    const { token, from, to } = route.places;
    const isToCheck =
      hasDerivedSeq(route.map) && token !== undefined && from !== undefined && to !== undefined;
    const ends = new PageEnds();
    const pages = isToCheck ? { ...source, seen: watchingEnds(source.seen, ends) } : source;
    const lines = readPages(pages, { session, client, rules, limit, ...reading });
    const normal = rows.normaliser === undefined ? lines : rows.normaliser.over(lines);
    const made = route.map === undefined ? normal : withLikelyTimes(table, route.map, normal);
    const canonical = isToCheck
      ? checkJoins(made, {
          ends,
          place: reading.place,
          isFull: (count) => count >= limit,
          linesAt: (time) => linesAt(table, route, asked, reading, known, time),
        })
      : made;
    for await (const chunk of canonical) {
      if (chunk.length > 0) await requireFiltered(table, route, asked, reading, known);
      yield chunk;
    }
  }

  /** The lines of one time, asked for by themselves. */
  async function linesAt(
    table: Table,
    route: RpcRoute,
    asked: Asked,
    reading: Reading,
    known: Learnt,
    time: bigint,
  ): Promise<readonly string[]> {
    const alone = { ...asked, from: time, to: time + 1n };
    const { source, rows } = pagesOf(table, route, alone, known, reading.place);
    const lines = readPages(source, {
      session,
      client,
      rules,
      limit: Number.POSITIVE_INFINITY,
      ...reading,
    });
    const { clipFrom, clipTo } = writeBounds(boundsForm(route), alone);
    const parts: Uint8Array[] = [];
    const canonical = rows.normaliser === undefined ? lines : rows.normaliser.over(lines);
    for await (const chunk of clipRows(canonical, clipFrom, clipTo, true)) parts.push(chunk);
    return Buffer.concat(parts).toString("utf8").split("\n").slice(0, -1);
  }

  /** Throws `not_filtered` where runs that cannot exist have rows, asked for in the form that gave some. */
  async function requireFiltered(
    table: Table,
    route: RpcRoute,
    asked: Asked,
    reading: Reading,
    known: Learnt,
  ): Promise<void> {
    const { namesRun, namesInstance } = traitsOf(route, profile);
    if (namesRun && namesInstance) return;
    const { place, signal } = reading;
    const request = probeForm(route);
    const key = JSON.stringify([asked.run.instanceId, asked.run.runId]);
    if (known.filtered.has(key)) return;
    const ids = await listed(asked.run.instanceId, signal);
    const others = impossibleRuns(request, traitsOf(route, profile), asked.run, ids, place);
    for (const other of known.isFiltered ? others.filter(({ isNear }) => isNear) : others) {
      const { instanceId, runId } = other;
      const { source } = pagesOf(table, route, { ...asked, run: { instanceId, runId } }, known, place);
      if ((await hasRows(source, reading)) && other.isImpossible) {
        throw ignoresParameter(other, request, place);
      }
    }
    known.isFiltered = true;
    known.filtered.add(key);
  }

  async function hasRows(source: PageSource, reading: Reading): Promise<boolean> {
    try {
      for await (const chunk of readPages(source, { session, client, rules, limit: 1, ...reading })) {
        if (chunk.length > 0) return true;
      }
      return false;
    } catch (thrown) {
      if (thrown instanceof RunvaultError && notThere.has(thrown.code)) return false;
      throw thrown;
    }
  }

  return {
    label: address.label,
    now: () => session.now(),
    stats: session.stats,
    retriesOf: (run) => session.retriesOf(run),
    described: { tables: profile.described, none: profile.none, by: profile.name },
    traits: (name) => {
      const route = rpc.tables[name];
      return route === undefined ? undefined : traitsOf(route, profile);
    },
    listings: async () => [listing],
    instances,
    runs: async (instanceId, signal): Promise<readonly RunEntry[] | null> =>
      await withoutText(await runs(instanceId, signal)),

    async facts(run, bounds, signal, asked = {}): Promise<StorageFacts | null> {
      requireExactRun(run);
      const route = documents.facts;
      const isBounded = bounds.from !== undefined || bounds.to !== undefined;
      if (route === undefined || (isBounded && !route.heedBounds)) return null;
      return await optionalFacts({ table: asked.table }, session.notices, ({ table }) =>
        factsOf(run, bounds, table, signal),
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
      const route = routeOf(profile, rpc, table.name, request);
      for (const [filter] of filters) requireTaken(filter, route, table.name, profile);
      session.options.onRowBuffers?.();
      using scope = session.scope(request.signal);
      const { signal } = scope;
      using _place = await session.gate.rows(signal);
      const place = placeOf(route, { ...placeOfRun(request), table: table.name });
      const reading = { place, signal, rate: session.rowRate(place) };
      const asked = askedOf(request, filters);
      const { clipFrom, clipTo } = writeBounds(boundsForm(route), asked);
      // of rows that are clipped from the front nobody knows how many there are
      const limit = request.limit ?? Number.POSITIVE_INFINITY;
      const wanted = clipFrom === undefined ? limit : Number.POSITIVE_INFINITY;
      try {
        yield* takeRows(
          clipRows(pagedRows(table, route, asked, reading, wanted), clipFrom, clipTo, true),
          request.limit,
        );
      } catch (thrown) {
        throw withinReach(thrown, { ...placeOfRun(request), table: table.name });
      }
    },
  };
}

/** The same memory of pages, which tells where each ends. */
function watchingEnds(seen: SeenPages, ends: PageEnds): SeenPages {
  return {
    ...seen,
    hasPage: (index, lines) => {
      ends.add(lines.rows);
      return seen.hasPage(index, lines);
    },
  };
}

function askedOf(request: RowRequest, filters: Asked["filters"]): Asked {
  const { instanceId, runId, from, to } = request;
  return {
    run: { instanceId, runId },
    filters,
    from: from === undefined ? undefined : checkedTime(from),
    to: to === undefined ? undefined : checkedTime(to),
  };
}

function messageOf(request: RpcRequest, values: RequestValues, place: ErrorPlace): Uint8Array {
  const message = requestMessage(request, values);
  if (message instanceof Uint8Array) return message;
  throw new RunvaultError(
    "invalid_argument",
    `the request does not fit ${request.method.input.typeName}: ${message.message}`,
    {
      place,
      hint: "An id or a time may be more than the field in the profile can hold.",
    },
  );
}

/** A request as the writer of bounds knows it. */
function boundsForm({ places, times }: RpcRequest): Parameters<typeof writeBounds>[0] {
  return { parameters: namesOf(places), times };
}

/** A request as the probe of filters knows it. */
function probeForm({ method, places }: RpcRequest): Parameters<typeof impossibleRuns>[0] {
  return { path: methodPath(method), parameters: namesOf(places) };
}

function namesOf({ instance, run, from, to, limit }: RpcRequest["places"]): RestRequest["parameters"] {
  const name = (path: readonly string[] | undefined) => path?.join(".");
  return {
    instance: name(instance),
    run: name(run),
    from: name(from),
    to: name(to),
    limit: name(limit),
    filters: {},
    fixed: {},
  };
}

function traitsOf(route: RpcRoute, { name }: Pick<Profile, "name">): RouteTraits {
  const { map, places } = route;
  const names = (column: string) => map === undefined || map.columns[column]?.kind === "field";
  const bounds = { from: places.from !== undefined, to: places.to !== undefined };
  const notes: string[] = [];
  if (!bounds.from && !bounds.to) notes.push("fetched whole each time: the gateway takes no time bounds");
  else if (!bounds.from) notes.push("the gateway takes no beginning of a time window");
  else if (!bounds.to) notes.push("the gateway takes no end of a time window");
  return {
    map,
    ...(name === "default" ? {} : { profile: name }),
    namesRun: names("run_id"),
    namesInstance: names("instance_id"),
    pages: places.token === undefined ? "none" : "cursor",
    bounds,
    order: "ascending",
    filters: Object.keys(places.filters) as FilterName[],
    takesLimit: places.limit !== undefined,
    notes,
  };
}

/** The table's route; throws where the profile has none. */
function routeOf({ file, name, none }: Profile, rpc: RpcProfile, table: TableName, run: RunRef): RpcRoute {
  const route = rpc.tables[table];
  if (route !== undefined) return route;
  const place = { instance: run.instanceId, run: run.runId, table };
  if (none.includes(table)) {
    throw new RunvaultError("history_unavailable", `the profile ${name} says that there are no ${table}`, {
      place,
    });
  }
  throw new RunvaultError("route_not_found", `the profile ${name} has no method for ${table}`, {
    place,
    hint: `Add ${table} to rpc.tables of ${file}, or leave it out of --tables.`,
  });
}

function requireTaken(filter: FilterName, { places }: RpcRoute, table: TableName, profile: Profile): void {
  if (places.filters[filter] !== undefined) return;
  throw new RunvaultError("invalid_argument", `the gateway's ${table} cannot be filtered by ${filter}`, {
    place: { table },
    hint: `The profile ${profile.name} names no field for it.`,
  });
}
