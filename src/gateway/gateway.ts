import type { HistorySource, RunRef } from "../model/source.ts";
import type { GatewayStats } from "./http/http-session.ts";

/** A remote gateway, over any transport. */
export interface Gateway extends HistorySource {
  readonly stats: GatewayStats;
  /** Repeated attempts of requests about a run. */
  retriesOf(run: RunRef): number;
}

/** A gateway whose connections someone else closes. */
export type GatewaySource = Omit<Gateway, typeof Symbol.asyncDispose>;

/** The lists of a gateway. */
export type GatewayLists = Pick<GatewaySource, "instances" | "runs">;
