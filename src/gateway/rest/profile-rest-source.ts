import type { Table, TableName } from "../../model/profile/table.ts";
import type { RunRef } from "../../model/source.ts";
import { describedRoute, requireTaken } from "../described-route.ts";
import { readJson } from "../documents.ts";
import type { GatewayLists, GatewaySource } from "../gateway.ts";
import type { ErrorReading } from "../http/error-answer.ts";
import { withinReach } from "../http/error-reach.ts";
import type { HttpSession } from "../http/http-session.ts";
import type { ErrorWords, Profile, RestProfile, RestRequest } from "../profile/profile.ts";
import { RowNormaliser } from "../profile/rows/row-normaliser.ts";
import { profileDocumentSource } from "../profile-document-source.ts";
import { placeOfRun, requireExactRun, requireRows } from "../request-checks.ts";
import { askRest } from "./ask-rest.ts";
import { filterKnowledge } from "./require-filtered.ts";
import { restCall } from "./rest-call.ts";
import { RestClient } from "./rest-client.ts";
import { routeTraitsOf } from "./route-traits-of.ts";
import { profileRows, type RouteKnowledge } from "./row-source.ts";
import { writeBounds } from "./written-bounds.ts";

/**
 * A gateway over REST as a profile describes it; the caller closes the connections. What the profile does not name is
 * never requested: lists then come from the profile's `given`, documents and facts are null, rows `route_not_found`.
 *
 * `rows` throws `not_filtered` if the gateway returns rows of runs that cannot exist.
 *
 * `lists` replaces this source's lists, for a gateway that is also reached over another transport.
 */
export function profileRestSource(
  session: HttpSession,
  profile: Profile,
  rest: RestProfile,
  lists?: () => GatewayLists,
): GatewaySource {
  const { address } = session;
  const client = new RestClient(session, errorReading(rest.errors));
  const knowledge = new Map<TableName, RouteKnowledge>();
  const normalisers = new Map<string, RowNormaliser>();
  const documents = profileDocumentSource<RestRequest>(
    session,
    profile,
    rest.documents,
    {
      by: "REST",
      ask: askRest(session, client, rest.base),
      bounds: writeBounds,
      named: ({ path, parameters }, place) => ({
        what: `the route ${path}`,
        instance: path.includes("{instance}") ? "{instance}" : parameters.instance,
        place,
      }),
      check: readJson,
    },
    lists,
  );

  /** A run's normaliser is kept while the run is being requested: making one takes longer than an answer. */
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

  return {
    ...documents,
    traits: (table) => {
      const route = rest.tables[table];
      return route === undefined ? undefined : routeTraitsOf(table, route, profile);
    },

    async *rows(request): AsyncGenerator<Uint8Array, undefined> {
      requireExactRun(request);
      const { table, filters } = requireRows(request);
      const { instanceId, runId } = request;
      const route = describedRoute(profile, rest.tables, table.name, request, words);
      const traits = routeTraitsOf(table.name, route, profile);
      requireTaken(filters, route.parameters.filters, table.name, profile, words);
      const known = knowledge.get(table.name) ?? {
        ...filterKnowledge(traits),
        namesNext: !["cursor", "address", "link"].includes(route.pages.by),
        totalHeeds: {},
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
        listed: documents.listed,
        known,
        normaliserOf: (run: RunRef) => normaliserOf(table, run),
      };
      try {
        const rows = profileRows(source, request, filters, place, scope.signal);
        yield* session.noContent.noting(request, table.name, rows);
      } catch (thrown) {
        throw withinReach(thrown, place);
      }
    },
  };
}

const words = { route: "route", parameter: "parameter", tables: "the tables" };

/** More than are in use at a time. */
const mostNormalisers = 32;

/** A name that is safe to show; others may be anything, even a secret. */
function shownField(path: readonly string[]): string {
  const name = path.join(".");
  return /^[\w.-]{1,80}$/.test(name) ? name : "with an odd name";
}

/** The profile's error codes; for other codes the status decides. */
function errorReading({ code, codes }: ErrorWords): ErrorReading {
  return {
    code,
    meaning: (_status, word) => (Object.hasOwn(codes, word) ? codes[word] : undefined),
    usual: (word) => (Object.hasOwn(codes, word) ? { status: 200, code: codes[word]! } : undefined),
    isKnown: (word) => Object.hasOwn(codes, word),
  };
}
