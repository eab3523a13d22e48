import type { HistorySource, RunRef } from "../model/source.ts";
import type { GatewayStats } from "./http/http-session.ts";

/** A remote gateway, over whichever transport. */
export interface Gateway extends HistorySource {
  readonly stats: GatewayStats;
  /** Attempts repeated of requests about a run. */
  retriesOf(run: RunRef): number;
}

/** A gateway over connections that are another's to close. */
export type GatewaySource = Omit<Gateway, typeof Symbol.asyncDispose>;

/** The lists of a gateway. */
export type GatewayLists = Pick<GatewaySource, "instances" | "runs">;
