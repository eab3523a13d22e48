import { createHash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { type Resource, ResourceSchema } from "../../gen/example/history/v1/history_service_pb.ts";
import type { Contract } from "../../model/control.ts";
import { type TableName, tableNamed } from "../../model/profile/table.ts";
import { rowMessage } from "../../row/wire/row-message.ts";
import type { SimulatorOptions } from "../simulator-options.ts";
import type { InstrumentPlan } from "../world/run-plan.ts";
import type { WorldRun } from "../world/world.ts";

interface Delivery {
  readonly deliveryModel: "EVENT" | "SNAPSHOT" | "SAMPLED";
  readonly replayPolicy: "NONE" | "LAST" | "ALL";
  readonly mergeModel: "APPEND" | "REPLACE" | "UPSERT";
  readonly dropPolicy: "NEVER" | "OLDEST" | "CONFLATE";
  /** The fields by which an UPSERT replaces a value. */
  readonly identity?: readonly string[];
}

/** How each table's resources behave live. Together they use every value of the contract. */
const deliveries: Record<TableName, Delivery> = {
  fills: { deliveryModel: "EVENT", replayPolicy: "ALL", mergeModel: "APPEND", dropPolicy: "NEVER" },
  orders: {
    deliveryModel: "EVENT",
    replayPolicy: "ALL",
    mergeModel: "UPSERT",
    dropPolicy: "NEVER",
    identity: ["client_order_id"],
  },
  bars: { deliveryModel: "EVENT", replayPolicy: "LAST", mergeModel: "APPEND", dropPolicy: "OLDEST" },
  order_book: {
    deliveryModel: "SNAPSHOT",
    replayPolicy: "LAST",
    mergeModel: "REPLACE",
    dropPolicy: "CONFLATE",
  },
  factors: { deliveryModel: "SAMPLED", replayPolicy: "NONE", mergeModel: "REPLACE", dropPolicy: "CONFLATE" },
  events: { deliveryModel: "EVENT", replayPolicy: "NONE", mergeModel: "APPEND", dropPolicy: "OLDEST" },
  equity: { deliveryModel: "SAMPLED", replayPolicy: "LAST", mergeModel: "REPLACE", dropPolicy: "CONFLATE" },
  metrics: {
    deliveryModel: "SNAPSHOT",
    replayPolicy: "LAST",
    mergeModel: "UPSERT",
    dropPolicy: "OLDEST",
    identity: ["name", "window"],
  },
};

/** A live resource of a run, with its delivery contract. */
export interface CatalogResource {
  readonly resource: Resource;
  readonly table: TableName;
  readonly contract: Contract & Delivery;
  readonly identity: readonly string[];
}

/** The resources of a run that have rows, in the order of their keys. */
export function resourcesOf(
  run: WorldRun,
  instruments: readonly InstrumentPlan[],
  options: SimulatorOptions,
): Resource[] {
  const { account, portfolio, venue } = options;
  const dark = `${venue}-DARK`;
  return [
    ...instruments.flatMap(({ symbol }) => {
      const traded = { symbol, account, portfolio };
      return [
        { resourceKey: `bars.${venue}.${symbol}.1m`, table: "bars", symbol, venue },
        { resourceKey: `book.${venue}.${symbol}`, table: "order_book", symbol, venue },
        { resourceKey: `factors.${portfolio}.${symbol}`, table: "factors", symbol, venue, portfolio },
        { resourceKey: `fills.${venue}.${symbol}`, table: "fills", venue, ...traded },
        { resourceKey: `fills.${dark}.${symbol}`, table: "fills", venue: dark, ...traded },
        { resourceKey: `orders.${venue}.${symbol}`, table: "orders", venue, ...traded },
        { resourceKey: `orders.${dark}.${symbol}`, table: "orders", venue: dark, ...traded },
      ];
    }),
    { resourceKey: "events.account", table: "events", account, portfolio },
    { resourceKey: "events.runtime", table: "events" },
    { resourceKey: `portfolio.${portfolio}`, table: "equity", account, portfolio },
    { resourceKey: `portfolio.${portfolio}`, table: "metrics", account, portfolio },
  ]
    .filter(({ table }) => run.tables[table as TableName].rows > 0)
    .sort((a, b) => (a.resourceKey < b.resourceKey ? -1 : a.resourceKey > b.resourceKey ? 1 : 0))
    .map((resource) => create(ResourceSchema, resource));
}

/** The same resources with their contracts. */
export function catalogOf(
  run: WorldRun,
  instruments: readonly InstrumentPlan[],
  options: SimulatorOptions,
): CatalogResource[] {
  return resourcesOf(run, instruments, options).map((resource) => {
    const table = resource.table as TableName;
    const { identity = [], ...delivery } = deliveries[table];
    const hasCurrencies = table === "metrics" && options.currencies.length > 1;
    return {
      resource,
      table,
      identity: hasCurrencies ? [...identity, "currency"] : identity,
      contract: {
        model: table,
        payloadSchema: rowMessage(tableNamed(table)).typeName,
        historyModel: table,
        visibility: "PUBLIC",
        ...delivery,
      },
    };
  });
}

/** A version that changes whenever the catalog does. */
export function catalogVersion(resources: readonly CatalogResource[]): string {
  const text = JSON.stringify(resources.map(({ resource, contract }) => [resource, contract]));
  return createHash("sha256").update(text).digest("hex").slice(0, 12);
}
