import type { ErrorCode } from "../model/error.ts";
import type {
  FactsRequest,
  Listed,
  ListedRun,
  RunEntry,
  RunListing,
  RunRef,
  StorageFacts,
} from "../model/source.ts";
import type { TimeBounds } from "../model/time.ts";
import { withoutText } from "./documents.ts";
import type { GatewaySource } from "./gateway.ts";
import type { HttpSession } from "./http/http-session.ts";
import { nullOnAbsence, nullOnRefusal } from "./optional-answer.ts";
import { optionalFacts } from "./optional-facts.ts";
import { requireExactRun, requireInstance } from "./request-checks.ts";

/** How documents are requested over one transport: its answers, and its errors for missing documents. */
export interface DocumentCalls extends Pick<GatewaySource, "document"> {
  /** The transport's name. */
  readonly by: string;
  readonly instances: RunListing["instances"];
  readonly runs: RunListing["runs"];
  readonly currentRun: RunListing["currentRun"];
  facts(
    run: RunRef,
    bounds: TimeBounds,
    asked: FactsRequest,
    signal: AbortSignal | undefined,
  ): Promise<StorageFacts>;
  /** The error codes that mean that it has none. */
  readonly absent: {
    readonly currentRun: readonly ErrorCode[];
    readonly document: readonly ErrorCode[];
    /** The document of the instance. */
    readonly instance: readonly ErrorCode[];
  };
}

/** All of a gateway except its rows. */
export type DocumentSource = Pick<
  GatewaySource,
  "label" | "now" | "stats" | "retriesOf" | "instances" | "runs" | "facts" | "document"
> &
  Required<Pick<GatewaySource, "listings" | "reconnect" | "isNoContentUnclear">>;

/** The documents of a gateway over one transport; null for those that it does not have. Odd ids are never sent. */
export function documentSource(session: HttpSession, calls: DocumentCalls): DocumentSource {
  const { absent } = calls;

  async function runs(instanceId: string, signal?: AbortSignal): Promise<Listed<ListedRun> | null> {
    requireInstance(instanceId);
    return await nullOnAbsence(["route_not_found"], () => calls.runs(instanceId, signal));
  }

  async function currentRun(instanceId: string, signal?: AbortSignal): Promise<string | null> {
    requireInstance(instanceId);
    return await nullOnAbsence(absent.currentRun, () => calls.currentRun(instanceId, signal));
  }

  return {
    label: session.address.label,
    now: () => session.now(),
    stats: session.stats,
    retriesOf: (run) => session.retriesOf(run),
    reconnect: () => session.reconnect(),
    isNoContentUnclear: (run, table) => session.noContent.isUnclear(run, table),
    listings: async () => [{ by: calls.by, instances: calls.instances, runs, currentRun }],
    instances: calls.instances,
    runs: async (instanceId, signal): Promise<readonly RunEntry[] | null> =>
      await withoutText(await runs(instanceId, signal)),

    async facts(run, bounds, signal, asked = {}): Promise<StorageFacts | null> {
      requireExactRun(run);
      return await optionalFacts(asked, session.notices, (ask) => calls.facts(run, bounds, ask, signal));
    },

    async document(run, kind, signal): Promise<Uint8Array | null> {
      requireExactRun(run);
      const codes = kind === "instance" ? absent.instance : absent.document;
      return await nullOnRefusal(`the ${kind} document`, codes, session.notices, () =>
        calls.document(run, kind, signal),
      );
    },
  };
}
