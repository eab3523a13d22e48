import { type ErrorCode, type ErrorPlace, RunvaultError } from "../model/error.ts";
import type { TableName } from "../model/profile/table.ts";
import type {
  DocumentKind,
  InstanceEntry,
  Listed,
  ListedRun,
  RunRef,
  StorageFacts,
} from "../model/source.ts";
import type { TimeBounds } from "../model/time.ts";
import { type DocumentSource, documentSource } from "./document-source.ts";
import { ownText } from "./documents.ts";
import type { GatewayLists, GatewaySource } from "./gateway.ts";
import { withGiven } from "./given-instances.ts";
import type { HttpSession } from "./http/http-session.ts";
import { nullOnAbsence } from "./optional-answer.ts";
import { type NextPage, wholeList, withRest } from "./paged-list.ts";
import { readJsonText } from "./profile/check/json-node.ts";
import type { DescribedDocuments, FactFields, Profile } from "./profile/profile.ts";
import { absentCodes, placeOfRun, requireExactRun } from "./request-checks.ts";
import type { ListedIds } from "./rest/filter-probe.ts";
import { currentRunIn, listedFacts, listedInstances, listedRuns } from "./rest/profile-documents.ts";
import type { WrittenBounds } from "./rest/written-bounds.ts";

/** The subject of a document request; undefined values are not sent. */
export interface DocumentValues extends NextPage {
  readonly instanceId?: string;
  readonly runId?: string;
  readonly bounds?: WrittenBounds;
}

/** How one transport requests what a profile describes. */
export interface ProfileTransport<Request> {
  readonly by: "REST" | "RPC";
  /** Reads the answer's JSON, with the place for errors about it, and over REST its headers. */
  ask<T>(
    request: Request,
    values: DocumentValues,
    place: ErrorPlace,
    signal: AbortSignal | undefined,
    read: (bytes: Uint8Array, place: ErrorPlace, headers: Readonly<Record<string, string>>) => T | Promise<T>,
  ): Promise<T>;
  bounds(request: Request, bounds: TimeBounds): WrittenBounds;
  /** How errors name the request, and how the request names an instance; undefined if it does not. */
  named(
    request: Request,
    place: ErrorPlace,
  ): { readonly what: string; readonly instance: string | undefined; readonly place: ErrorPlace };
  /** Throws if the bytes are not a document. */
  check(bytes: Uint8Array, place: ErrorPlace): void;
}

export interface ProfileDocumentSource extends DocumentSource, Pick<GatewaySource, "described"> {
  /** The ids that the gateway lists, requested once per instance; undefined if a list fails. */
  listed(instanceId: string, signal: AbortSignal): Promise<ListedIds | undefined>;
}

/** Codes by which a gateway says that it has no such document. */
const absentDocument: readonly ErrorCode[] = [...absentCodes, "resource_not_found"];
const noInstance: readonly ErrorCode[] = [
  ...absentDocument,
  "instance_not_found",
  "run_not_found",
  "refused",
];

/**
 * The documents of a gateway described by a profile, over one transport. What the profile does not name is never
 * requested: lists then come from the profile's `given`, documents and facts are null. `lists` are the gateway's over
 * any transport, if this one is not all of it.
 *
 * `runs` throws `not_filtered` if the list of runs is the same for every instance.
 */
export function profileDocumentSource<Request>(
  session: HttpSession,
  profile: Profile,
  documents: DescribedDocuments<Request>,
  transport: ProfileTransport<Request>,
  lists: (() => GatewayLists) | undefined,
): ProfileDocumentSource {
  const { ask } = transport;
  const listedIds = new Map<string, Promise<ListedIds | undefined>>();
  /** Whether the list of runs was shown to be of one instance alone. */
  let runsAreFiltered = false;

  async function instances(signal?: AbortSignal): Promise<Listed<InstanceEntry>> {
    const route = documents.instances;
    const entries =
      route === undefined
        ? []
        : await pagesOf(
            { route, values: {}, place: {}, signal, what: "instances" },
            ({ instanceId }: InstanceEntry) => instanceId,
            (bytes, here) => listedInstances(bytes, route, here),
          );
    return withRest(withGiven(entries, documents.given), entries.rest);
  }

  /** A list with its pages, unless the profile says that it is whole. */
  async function pagesOf<T>(
    of: {
      readonly route: Request & { readonly list: readonly string[]; readonly isWhole?: boolean | undefined };
      readonly values: DocumentValues;
      readonly place: ErrorPlace;
      readonly signal: AbortSignal | undefined;
      readonly what: string;
    },
    idOf: (entry: T) => string,
    read: (bytes: Uint8Array, place: ErrorPlace) => Promise<readonly T[]>,
  ): Promise<Listed<T>> {
    const { route, values, place, signal, what } = of;
    return await wholeList(what, idOf, (page) =>
      ask(route, { ...values, ...page }, place, signal, async (bytes, here, headers) => {
        const entries = await read(bytes, here);
        if (route.isWhole === true) return { entries, around: undefined, headers: {} };
        return { entries, around: readJsonText(new TextDecoder().decode(bytes)), headers };
      }),
    );
  }

  async function runs(instanceId: string, signal?: AbortSignal): Promise<Listed<ListedRun> | null> {
    const entries = await listOf(instanceId, signal);
    if (entries !== null && entries.length > 0 && !runsAreFiltered) await requireOwnRuns(instanceId, signal);
    return entries;
  }

  async function listOf(instanceId: string, signal: AbortSignal | undefined) {
    const route = documents.runs;
    if (route === undefined) return null;
    return await pagesOf(
      { route, values: { instanceId }, place: { instance: instanceId }, signal, what: "runs" },
      ({ runId }: ListedRun) => runId,
      (bytes, here) => listedRuns(bytes, instanceId, route, here),
    );
  }

  async function requireOwnRuns(instanceId: string, signal: AbortSignal | undefined): Promise<void> {
    const { what, instance, place } = transport.named(documents.runs!, { instance: instanceId });
    const none = `${instanceId}-runvault-none`;
    const ofNone =
      instance === undefined ? null : await nullOnAbsence(noInstance, () => listOf(none, signal));
    const isHeeded = instance !== undefined && (ofNone ?? []).length === 0;
    if (!isHeeded && (await (lists?.() ?? { instances }).instances(signal)).length > 1) {
      throw new RunvaultError(
        "not_filtered",
        `${what} lists the same runs for every instance: ${instance === undefined ? "nothing in its request names one" : `it ignores ${instance}`}`,
        { place, hint: "Correct the profile: runs would be taken for those of another instance." },
      );
    }
    runsAreFiltered = true;
  }

  async function currentRun(instanceId: string, signal?: AbortSignal): Promise<string | null> {
    const route = documents.instance;
    const path = route?.currentRun;
    if (route === undefined || path === undefined) return null;
    return await ask(route, { instanceId }, { instance: instanceId }, signal, (bytes, here) =>
      currentRunIn(bytes, path, here),
    );
  }

  async function facts(
    run: RunRef,
    bounds: TimeBounds,
    { table }: { readonly table?: TableName | undefined },
    signal: AbortSignal | undefined,
  ): Promise<StorageFacts> {
    const route = documents.facts!;
    const { instanceId, runId } = run;
    const values = { instanceId, runId, bounds: transport.bounds(route, bounds) };
    const of = (name: TableName | undefined, more: Readonly<Record<string, string>>) =>
      ask(route, { ...values, more }, placeOfRun(run), signal, (bytes, place) => ({
        bytes,
        table: name,
        place,
      }));
    const { tableParameter } = route;
    if (tableParameter === undefined) return await listedFacts([await of(table, {})], route);
    const answers = [];
    for (const name of table === undefined ? profile.described : [table]) {
      const answer = await nullOnAbsence(absentDocument, () =>
        of(name, { [tableParameter]: wireName(route, name) }),
      );
      if (answer !== null) answers.push(answer);
    }
    // counts of no table at all mean that there are none, not that every table is missing
    if (table === undefined && answers.length === 0) {
      const message = "the gateway has storage facts of no table";
      throw new RunvaultError("route_not_found", message, { place: placeOfRun(run) });
    }
    return await listedFacts(answers, route);
  }

  async function document(run: RunRef, kind: DocumentKind, signal?: AbortSignal): Promise<Uint8Array | null> {
    if (kind === "run") return ownText(await runs(run.instanceId, signal), run);
    const route = documents[kind];
    if (route === undefined) return null;
    if (kind === "facts") return (await facts(run, {}, {}, signal)).text ?? null;
    const { instanceId, runId } = run;
    return await ask(route, { instanceId, runId }, placeOfRun(run), signal, (bytes, here) => {
      transport.check(bytes, here);
      return bytes;
    });
  }

  async function askListed(instanceId: string, signal: AbortSignal): Promise<ListedIds | undefined> {
    try {
      const all = lists?.() ?? {
        instances,
        runs: (id: string) => nullOnAbsence(["route_not_found"], () => runs(id, signal)),
      };
      const entries = await all.instances(signal);
      const named = entries.find((entry) => entry.instanceId === instanceId)?.runIds ?? [];
      const own = (await all.runs(instanceId, signal)) ?? [];
      return {
        instances: entries.map((entry) => entry.instanceId),
        runs: [...new Set([...named, ...own.map(({ runId }) => runId)])],
      };
    } catch (thrown) {
      signal.throwIfAborted();
      // a failing list names nobody and proves nothing
      if (thrown instanceof RunvaultError) return undefined;
      throw thrown;
    }
  }

  const source = documentSource(session, {
    ...{ by: transport.by, instances, runs, currentRun, facts, document },
    absent: {
      currentRun: ["route_not_found", "instance_not_found"],
      document: absentDocument,
      instance: noInstance,
    },
  });

  return {
    ...source,
    described: { tables: profile.described, none: profile.none, by: profile.name },

    async facts(run, bounds, signal, asked = {}): Promise<StorageFacts | null> {
      requireExactRun(run);
      const route = documents.facts;
      if (route === undefined) return null;
      const isBounded = bounds.from !== undefined || bounds.to !== undefined;
      const { clipFrom, clipTo } = transport.bounds(route, bounds);
      // covering somewhat more than requested, or the whole run
      if (isBounded && (!route.heedBounds || clipFrom !== undefined || clipTo !== undefined)) return null;
      return await source.facts(run, bounds, signal, { table: asked.table });
    },

    listed(instanceId, signal) {
      const before = listedIds.get(instanceId);
      if (before !== undefined) return before;
      const asked = askListed(instanceId, signal);
      listedIds.set(instanceId, asked);
      asked.catch(() => listedIds.delete(instanceId));
      return asked;
    },
  };
}

function wireName({ tableWords }: FactFields, table: TableName): string {
  return Object.keys(tableWords).find((word) => tableWords[word] === table) ?? table;
}
