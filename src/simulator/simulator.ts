import { createHash } from "node:crypto";
import { create, type DescMessage, type MessageShape, toJson } from "@bufbuild/protobuf";
import {
  GetStorageFactsResponseSchema,
  HistoryInstanceSchema,
  ListResourcesResponseSchema,
  type Resource,
  ResourceSchema,
  RunSchema,
  SummarySchema,
} from "../gen/example/history/v1/history_service_pb.ts";
import type { ControlPlane, InstanceState } from "../model/control.ts";
import { RunvaultError } from "../model/error.ts";
import type {
  DocumentKind,
  HistorySource,
  InstanceEntry,
  RowRequest,
  RunEntry,
  RunRef,
  StorageFacts,
  TableFacts,
} from "../model/source.ts";
import { type FilterName, type TableName, tableNamed, tableNames } from "../model/table.ts";
import type { Nanoseconds, TimeBounds } from "../model/time.ts";
import { summaryOf } from "./run-summary.ts";
import { type SimulatorOptions, simulatorOptions } from "./simulator-options.ts";
import { readTableIndex } from "./table-index.ts";
import { type TableReader, tableReader } from "./table-reader.ts";
import { openWorld, type RenderWatch, tableFiles, type World, type WorldRun } from "./world.ts";

export type { SimulatorOptions } from "./simulator-options.ts";
export type { RenderWatch } from "./world.ts";

/** When a run happens. */
export interface RunSpan {
  readonly started: Nanoseconds;
  readonly ended: Nanoseconds;
  /** When the last row is known, late ones included: from here on a growing run is final. */
  readonly complete: Nanoseconds;
}

/** A deterministic world as a source of history. */
export interface Simulator extends HistorySource, ControlPlane {
  /** What both planes say of an instance. */
  instances(): Promise<readonly (InstanceEntry & InstanceState)[]>;
  /** When a run happens, whatever the clock says: what a clock for a growing run is set by. */
  span(run: RunRef): RunSpan;
}

const firstMetricsPort = 9100;
const projectVersion = "1.0.0";

/**
 * Opens the world of these options, rendering it into the cache folder where it is not there yet. The same options
 * give the same bytes on every machine. Throws `invalid_argument` on options out of range and on a bad file of bars,
 * and the reason of the watch's signal.
 */
export async function openSimulator(
  given: Partial<SimulatorOptions> & { readonly cacheDir: string },
  watch: RenderWatch = {},
): Promise<Simulator> {
  const options = simulatorOptions(given);
  return simulatorOf(await openWorld(options, watch), options);
}

function simulatorOf(world: World, options: SimulatorOptions): Simulator {
  const readers = new Map<string, Promise<TableReader>>();

  const reader = (run: WorldRun, table: TableName): Promise<TableReader> => {
    const { data, index } = tableFiles(run, table);
    let opened = readers.get(data);
    if (opened === undefined) {
      const { bytes, rows } = run.tables[table];
      opened = readTableIndex(index, bytes, rows).then((entries) => tableReader(data, entries));
      readers.set(data, opened);
      opened.catch(() => readers.delete(data));
    }
    return opened;
  };

  const runsOf = (instanceId: string): readonly WorldRun[] => {
    const runs = world.runs.filter((run) => run.instanceId === instanceId);
    if (runs.length > 0) return runs;
    throw new RunvaultError("instance_not_found", `there is no instance ${JSON.stringify(instanceId)}`, {
      place: { instance: instanceId },
      hint: `The instances are ${instanceIds().slice(0, 10).join(", ")}.`,
    });
  };

  const instanceIds = (): string[] => [...new Set(world.runs.map((run) => run.instanceId))];

  const runOf = ({ instanceId, runId }: RunRef): WorldRun => {
    const runs = runsOf(instanceId);
    const run = runs.find((candidate) => candidate.runId === runId);
    if (run !== undefined) return run;
    throw new RunvaultError("run_not_found", `instance ${instanceId} has no run ${JSON.stringify(runId)}`, {
      place: { instance: instanceId, run: runId },
      hint: `Its runs are ${runs
        .slice(0, 10)
        .map((candidate) => candidate.runId)
        .join(", ")}.`,
    });
  };

  /** The instant that limits what is seen of a run; undefined when all of it is. */
  const knownAt = (run: WorldRun, now: Nanoseconds): Nanoseconds | undefined =>
    run.growing && now < BigInt(run.complete) ? now : undefined;

  const statusOf = (run: WorldRun, known: Nanoseconds | undefined): string =>
    known !== undefined ? "RUNNING" : run.failed ? "FAILED" : "FINISHED";

  const factsOf = async (
    run: WorldRun,
    bounds: TimeBounds,
    known: Nanoseconds | undefined,
  ): Promise<StorageFacts> => {
    const facts = new Map<TableName, TableFacts>();
    for (const table of tableNames) {
      const counted = await (await reader(run, table)).count(bounds, known);
      facts.set(table, {
        rows: BigInt(counted.rows),
        first: counted.first,
        last: counted.last,
        schemaFingerprint: schemaFingerprint(table),
        final: known === undefined,
      });
    }
    return facts;
  };

  const entryOf = async (run: WorldRun, known: Nanoseconds | undefined): Promise<RunEntry> => {
    // rows are only ever added, so their number says which there are
    const seen = known === undefined ? undefined : await factsOf(run, {}, known);
    const rows = tableNames.reduce(
      (sum, table) => sum + (seen?.get(table)?.rows ?? BigInt(run.tables[table].rows)),
      0n,
    );
    return {
      instanceId: run.instanceId,
      runId: run.runId,
      status: statusOf(run, known),
      started: BigInt(run.started),
      ended: known === undefined ? BigInt(run.ended) : undefined,
      final: known === undefined,
      storageVersion: `${world.key.slice(0, 12)}-${rows}`,
    };
  };

  const resourcesOf = (run: WorldRun): Resource[] => {
    const { symbol } = world;
    const { account, portfolio, venue } = options;
    const dark = `${venue}-DARK`;
    const traded = { symbol, account, portfolio };
    return [
      { resourceKey: `bars.${venue}.${symbol}.1m`, table: "bars", symbol, venue },
      { resourceKey: `book.${venue}.${symbol}`, table: "order_book", symbol, venue },
      { resourceKey: "events.account", table: "events", account, portfolio },
      { resourceKey: "events.runtime", table: "events" },
      { resourceKey: `factors.${portfolio}.${symbol}`, table: "factors", symbol, venue, portfolio },
      { resourceKey: `fills.${venue}.${symbol}`, table: "fills", venue, ...traded },
      { resourceKey: `fills.${dark}.${symbol}`, table: "fills", venue: dark, ...traded },
      { resourceKey: `orders.${venue}.${symbol}`, table: "orders", venue, ...traded },
      { resourceKey: `orders.${dark}.${symbol}`, table: "orders", venue: dark, ...traded },
      { resourceKey: `portfolio.${portfolio}`, table: "equity", account, portfolio },
      { resourceKey: `portfolio.${portfolio}`, table: "metrics", account, portfolio },
    ]
      .filter(({ table }) => run.tables[table as TableName].rows > 0)
      .sort((a, b) => (a.resourceKey < b.resourceKey ? -1 : a.resourceKey > b.resourceKey ? 1 : 0))
      .map((resource) => create(ResourceSchema, resource));
  };

  const document = async (run: WorldRun, kind: DocumentKind, signal?: AbortSignal): Promise<Uint8Array> => {
    const known = knownAt(run, options.clock());
    const ended = known === undefined ? BigInt(run.ended) : 0n;
    const common = {
      runId: run.runId,
      instanceId: run.instanceId,
      status: statusOf(run, known),
      tsStarted: BigInt(run.started),
      tsEnded: ended,
    };
    switch (kind) {
      case "instance": {
        const runIds = runsOf(run.instanceId).map(({ runId }) => runId);
        const latestRunId = runIds.at(-1)!;
        return documentBytes(
          HistoryInstanceSchema,
          create(HistoryInstanceSchema, { instanceId: run.instanceId, runIds, latestRunId }),
        );
      }
      case "run": {
        const { final, storageVersion } = await entryOf(run, known);
        return documentBytes(
          RunSchema,
          create(RunSchema, { ...common, final, storageVersion: storageVersion ?? "" }),
        );
      }
      case "summary": {
        const totals = await summaryOf(run, known, (table) => reader(run, table), signal);
        return documentBytes(
          SummarySchema,
          create(SummarySchema, {
            ...common,
            strategy: world.strategy,
            account: options.account,
            portfolio: options.portfolio,
            currency: options.currency,
            ...totals,
          }),
        );
      }
      case "resources":
        return documentBytes(
          ListResourcesResponseSchema,
          create(ListResourcesResponseSchema, { resources: resourcesOf(run) }),
        );
      case "facts": {
        const facts = await factsOf(run, {}, known);
        const tables = [...facts].map(
          ([table, { rows, first, last, schemaFingerprint: fingerprint, final }]) => ({
            table,
            rows,
            minTsEvent: first ?? 0n,
            maxTsEvent: last ?? 0n,
            schemaFingerprint: fingerprint,
            final,
          }),
        );
        return documentBytes(
          GetStorageFactsResponseSchema,
          create(GetStorageFactsResponseSchema, { tables }),
        );
      }
    }
  };

  return {
    label: `simulator seed ${options.seed}`,
    async runs(instanceId) {
      const now = options.clock();
      return Promise.all(runsOf(instanceId).map((run) => entryOf(run, knownAt(run, now))));
    },
    async facts(ref, bounds) {
      const run = runOf(ref);
      return factsOf(run, bounds, knownAt(run, options.clock()));
    },
    async document(ref, kind, signal) {
      return document(runOf(ref), kind, signal);
    },
    async *rows(request) {
      const run = runOf(request);
      const filters = filtersOf(request);
      const { limit, signal } = request;
      if (limit !== undefined && (!Number.isInteger(limit) || limit < 1)) {
        throw new RunvaultError("invalid_argument", `limit is a whole number above zero, not ${limit}`);
      }
      const known = knownAt(run, options.clock());
      const table = await reader(run, request.table);
      yield* table.lines({ bounds: request, known, filters, limit, signal });
    },
    span(ref) {
      const run = runOf(ref);
      return { started: BigInt(run.started), ended: BigInt(run.ended), complete: BigInt(run.complete) };
    },
    async doctor() {
      return null;
    },
    async instances() {
      const now = options.clock();
      return instanceIds().map((instanceId, position): InstanceEntry & InstanceState => {
        const runs = runsOf(instanceId);
        const last = runs.at(-1)!;
        const running = knownAt(last, now) !== undefined;
        const state = running ? "RUNNING" : last.failed ? "FAILED" : "STOPPED";
        return {
          instanceId,
          runIds: runs.map(({ runId }) => runId),
          project: { name: world.strategy, version: projectVersion },
          desiredState: running ? "RUNNING" : "STOPPED",
          processState: running ? "RUNNING" : last.failed ? "CRASHED" : "STOPPED",
          runtimeState: state,
          instanceState: state,
          currentRunId: last.runId,
          metricsPort: firstMetricsPort + position,
        };
      });
    },
    async resources(instanceId) {
      return resourcesOf(runsOf(instanceId).at(-1)!);
    },
    async [Symbol.asyncDispose]() {
      // files are open only while a call reads them; the indexes go with the object
      readers.clear();
    },
  };
}

function filtersOf(request: RowRequest): (readonly [FilterName, string])[] {
  const table = tableNamed(request.table);
  const given = Object.entries(request.filters ?? {}).filter(([, value]) => value !== undefined) as [
    FilterName,
    string,
  ][];
  for (const [name] of given) {
    if (!table.filters.includes(name)) {
      throw new RunvaultError("invalid_argument", `the filter ${name} does not apply to ${table.name}`, {
        place: { instance: request.instanceId, run: request.runId, table: table.name },
        hint: `Filters of ${table.name}: ${table.filters.join(", ")}.`,
      });
    }
  }
  return given;
}

function documentBytes<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>): Uint8Array {
  const json = toJson(schema, message, { useProtoFieldName: true, alwaysEmitImplicit: true });
  return Buffer.from(JSON.stringify(json));
}

function schemaFingerprint(table: TableName): string {
  const columns = tableNamed(table).columns.map(({ name, kind }) => `${name}:${kind}`);
  return createHash("sha256").update(columns.join(",")).digest("hex").slice(0, 16);
}
