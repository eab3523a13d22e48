import { type ErrorPlace, RunvaultError } from "../../model/error.ts";
import { hasDerivedSeq } from "../../model/profile/row-map.ts";
import type { FilterName, Table, TableName } from "../../model/profile/table.ts";
import type { RouteTraits } from "../../model/route-traits.ts";
import type { RunRef } from "../../model/source.ts";
import type { TimeBounds } from "../../model/time.ts";
import { describedRoute, requireTaken } from "../described-route.ts";
import type { GatewayLists, GatewaySource } from "../gateway.ts";
import { withinReach } from "../http/error-reach.ts";
import type { HttpSession } from "../http/http-session.ts";
import type { RowRate } from "../http/row-rate.ts";
import type { Profile, RestRequest, RpcProfile, RpcRequest, RpcRoute } from "../profile/profile.ts";
import { withLikelyTimes } from "../profile/rows/likely-times.ts";
import { type RequestValues, requestMessage } from "../profile/rpc/request-message.ts";
import { profileDocumentSource } from "../profile-document-source.ts";
import { checkedBounds, placeOfRun, requireExactRun, requireRows } from "../request-checks.ts";
import { clipRows } from "../rest/pages/clip-rows.ts";
import { checkJoins, PageEnds } from "../rest/pages/page-joins.ts";
import { takeRows } from "../rest/pages/take-rows.ts";
import {
  type FilterKnowledge,
  type FilterProbe,
  filterKnowledge,
  notThere,
  requireFiltered,
} from "../rest/require-filtered.ts";
import { writeBounds } from "../rest/written-bounds.ts";
import { foreignRows } from "./foreign-rows.ts";
import { type PageSource, readPages } from "./page-reader.ts";
import { PageSize } from "./page-size.ts";
import { profileRpcClient } from "./profile-rpc-client.ts";
import { documentBytes } from "./rpc-documents.ts";
import { methodPath } from "./rpc-exchange.ts";
import { type SeenPages, seenByBytes } from "./seen-pages.ts";

/** What a table's answers have shown. */
interface Learnt extends FilterKnowledge {
  readonly size: PageSize;
}

interface Reading {
  readonly place: ErrorPlace;
  readonly signal: AbortSignal;
  readonly rate: RowRate;
}

/** One answer's rows as requested. */
interface Asked extends TimeBounds {
  readonly run: RunRef;
  readonly filters: readonly (readonly [FilterName, string])[];
}

/**
 * A gateway over RPC as a profile describes it; the caller closes the connections. What the profile does not name is
 * never requested: lists then come from the profile's `given`, documents and facts are null, rows `route_not_found`.
 *
 * `rows` throws `not_filtered` if the gateway returns rows of runs that cannot exist, and `stream_cut` if the pages are
 * inconsistent.
 *
 * `lists` replaces this source's lists, for a gateway that is also reached over another transport.
 */
export function profileRpcSource(
  session: HttpSession,
  profile: Profile,
  rpc: RpcProfile,
  lists?: () => GatewayLists,
): GatewaySource {
  const { address } = session;
  const { client, rules, prefix } = profileRpcClient(session, rpc);
  const learnt = new Map<TableName, Learnt>();

  const placeOf = (request: RpcRequest, place: ErrorPlace): ErrorPlace => ({
    ...place,
    url: address.origin + prefix + methodPath(request.method),
  });

  const documents = profileDocumentSource<RpcRequest>(
    session,
    profile,
    rpc.documents,
    {
      by: "RPC",
      async ask(request, values, place, signal, read) {
        using scope = session.scope(signal);
        const here = placeOf(request, place);
        try {
          const { method, fixed } = request;
          const asked = { ...request, fixed: { ...fixed, ...values.more } };
          const answer = await client.document(method, messageOf(asked, values, here), {
            place: here,
            signal: scope.signal,
          });
          return await read(documentBytes(method.output, answer, "foreign"), here, {});
        } catch (thrown) {
          throw withinReach(thrown, place);
        }
      },
      bounds: (request, bounds) => writeBounds(boundsForm(request), bounds),
      named: (request, place) => ({
        what: request.method.name,
        instance: request.places.instance?.join("."),
        place: placeOf(request, place),
      }),
      // every message is a document
      check: () => {},
    },
    lists,
  );

  function learntOf(table: TableName, route: RpcRoute, traits: RouteTraits): Learnt {
    const known = learnt.get(table) ?? {
      size: new PageSize(rules.pageBytes, route.largestLimit),
      ...filterKnowledge(traits),
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
        // a row may be almost empty here
        leastRowBytes: 4,
        request: (limit, token) => messageOf(route, { ...run, bounds, filters, limit, token }, place),
      },
    };
  }

  /** Rows as they come, page by page; before the first ones it is proven that they are this run's alone. */
  async function* pagedRows(
    table: Table,
    route: RpcRoute,
    asked: Asked,
    reading: Reading,
    limit: number,
  ): AsyncGenerator<Uint8Array, undefined> {
    const traits = traitsOf(route, profile);
    const known = learntOf(table.name, route, traits);
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
    const probe: FilterProbe = {
      request: probeForm(route),
      traits,
      known,
      listed: documents.listed,
      notThere,
      rowsOf: (run) => {
        const { source } = pagesOf(table, route, { ...asked, run }, known, reading.place);
        return readPages(source, { session, client, rules, limit: 1, ...reading });
      },
    };
    for await (const chunk of canonical) {
      if (chunk.length > 0) await requireFiltered(probe, asked.run, reading.place, reading.signal);
      yield chunk;
    }
  }

  /** The lines of one time, requested separately. */
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

  return {
    ...documents,
    traits: (name) => {
      const route = rpc.tables[name];
      return route === undefined ? undefined : traitsOf(route, profile);
    },

    async *rows(request): AsyncGenerator<Uint8Array, undefined> {
      requireExactRun(request);
      const { table, filters } = requireRows(request);
      const route = describedRoute(profile, rpc.tables, table.name, request, words);
      requireTaken(filters, route.places.filters, table.name, profile, words);
      session.options.onRowBuffers?.();
      using scope = session.scope(request.signal);
      const { signal } = scope;
      using _place = await session.gate.rows(signal);
      const place = placeOf(route, { ...placeOfRun(request), table: table.name });
      const reading = { place, signal, rate: session.rowRate(place, request.onBody) };
      const { instanceId, runId } = request;
      const asked = { run: { instanceId, runId }, filters, ...checkedBounds(request) };
      const { clipFrom, clipTo } = writeBounds(boundsForm(route), asked);
      // the number of rows clipped from the front is unknown
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

/** The same memory of pages, which also notes where each ends. */
function watchingEnds(seen: SeenPages, ends: PageEnds): SeenPages {
  return {
    ...seen,
    hasPage: (index, lines) => {
      ends.add(lines.rows);
      return seen.hasPage(index, lines);
    },
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
      hint: "An id or a time may not fit the type of its field in the profile.",
    },
  );
}

/** A request in the form for writing bounds. */
function boundsForm({ places, times }: RpcRequest): Parameters<typeof writeBounds>[0] {
  return { parameters: namesOf(places), times };
}

/** A request in the form for probing filters. */
function probeForm({ method, places }: RpcRequest): FilterProbe["request"] {
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

const words = { route: "method", parameter: "field", tables: "rpc.tables" };
