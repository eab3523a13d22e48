import type { HistorySource } from "../model/source.ts";
import type { GatewayStats } from "./http/http-session.ts";

/** A remote gateway, over whichever transport. */
export interface Gateway extends HistorySource {
  readonly stats: GatewayStats;
}

/** A gateway over connections that are another's to close. */
export type GatewaySource = Omit<Gateway, typeof Symbol.asyncDispose>;
