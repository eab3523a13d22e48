import { openGateway as openGatewayAt } from "../gateway/open-gateway.ts";
import type { GatewayOptions } from "../gateway/options.ts";
import type { TransportChoice } from "../gateway/transport-choice.ts";
import type { HistorySource } from "../model/source.ts";

export { checkSource, type SourceFault } from "../gateway/adapter/check-source.ts";
export type { Adapter, AdapterOptions } from "../gateway/adapter/open-adapter.ts";
export { foreignRow } from "../gateway/profile/rows/foreign-row.ts";
export { type NormaliserOptions, RowNormaliser } from "../gateway/profile/rows/row-normaliser.ts";
export { type ErrorCode, RunvaultError } from "../model/error.ts";
export {
  type FilterName,
  type Table,
  type TableName,
  tableNamed,
  tableNames,
} from "../model/profile/table.ts";
export { type RouteTraits, usualTraits } from "../model/route-traits.ts";
export type {
  DocumentKind,
  FactsRequest,
  HistorySource,
  InstanceEntry,
  RowRequest,
  RunEntry,
  RunRef,
  StorageFacts,
  TableFacts,
} from "../model/source.ts";

export type { TimeBounds } from "../model/time.ts";
export { canonicalLine, type Row } from "../row/line.ts";

export interface OpenGatewayOptions extends Omit<GatewayOptions, "baseUrl"> {
  /** `rest`, `rpc`, or `auto`, which uses each for what it does best. Default `auto`. */
  readonly transport?: TransportChoice;
}

/**
 * Opens a gateway as a source of history; nothing is sent yet. Times are nanoseconds since 1970 UTC as bigints, rows come
 * as NDJSON bytes in the order of (ts_event, seq). Dispose it to close its connections. Throws `invalid_argument` for an
 * invalid address or option; its methods throw RunvaultErrors, after the client's own retries.
 */
export function openGateway(
  url: string,
  { transport = "auto", ...options }: OpenGatewayOptions = {},
): HistorySource {
  return openGatewayAt({ ...options, baseUrl: url }, transport);
}
