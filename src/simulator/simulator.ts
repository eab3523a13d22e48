import { create, type DescMessage, type MessageShape, toJson } from "@bufbuild/protobuf";
import {
  GetStorageFactsResponseSchema,
  HistoryInstanceSchema,
  ListResourcesResponseSchema,
  RunSchema,
  SummarySchema,
} from "../gen/example/history/v1/history_service_pb.ts";
import type { ControlPlane } from "../model/control.ts";
import { RunvaultError } from "../model/error.ts";
import type { InstanceState } from "../model/instance-state.ts";
import { checkedRows } from "../model/profile/row-request.ts";
import { fieldsFingerprint } from "../model/profile/schema-fingerprint.ts";
import { type TableName, tableNamed, tableNames } from "../model/profile/table.ts";
import type {
  DocumentKind,
  FactsRequest,
  HistorySource,
  InstanceEntry,
  RunEntry,
  RunRef,
  StorageFacts,
  TableFacts,
} from "../model/source.ts";
import { nearestName } from "../model/text/nearest-name.ts";
import type { Nanoseconds, TimeBounds } from "../model/time.ts";
import { instanceNotFound, runNotFound } from "../model/usual-errors.ts";
import { textRowHash } from "../row/row-hash.ts";
import { bookFaultOf } from "./books/book-fault.ts";
import { resourcesOf } from "./control/catalog.ts";
import { InstanceFaults } from "./control/instance-fault.ts";
import { InstanceLife } from "./control/instance-life.ts";
import { simulatedControl } from "./control/simulated-control.ts";
import type { SeenRun } from "./seen-run.ts";
import { type GivenOptions, type SimulatorOptions, simulatorOptions } from "./simulator-options.ts";
import { movedReader } from "./store/moved-reader.ts";
import { readTableIndex } from "./store/table-index.ts";
import { type TableReader, tableReader } from "./store/table-reader.ts";
import { begunRuns } from "./world/begun-run.ts";
import { instanceIdOf } from "./world/run-numbers.ts";
import { runRows } from "./world/run-rows.ts";
import { summaryOf } from "./world/run-summary.ts";
import { openWorld, type RenderWatch, tableFiles, type World, type WorldRun } from "./world/world.ts";

export type { GivenOptions, SimulatorOptions } from "./simulator-options.ts";
export type { RenderWatch } from "./world/world.ts";

/** When a run happens. */
export interface RunSpan {
  readonly started: Nanoseconds;
  readonly ended: Nanoseconds;
  /** When the last row is known, including late ones. From then on a growing run is final. */
  readonly complete: Nanoseconds;
}

/** A deterministic world as a source of history. */
export interface Simulator extends HistorySource, ControlPlane {
  /** What both planes report about each instance. */
  instances(): Promise<readonly (InstanceEntry & InstanceState)[]>;
  /** When a rendered run happens, regardless of the clock, which may be set by it. */
  span(run: RunRef): RunSpan;
  /** The spans of runs that grow with the clock, whether or not they have begun. */
  growing(): readonly RunSpan[];
}

/**
 * Opens the world of these options, and first renders it into the cache folder if necessary. The same options give
 * the same bytes on every machine. Throws `invalid_argument` for options out of range and for an invalid file of bars,
 * and the reason of the watch's signal.
 */
export async function openSimulator(given: GivenOptions, watch: RenderWatch = {}): Promise<Simulator> {
  const options = simulatorOptions(given);
  refuseUnknownInstances(options);
  return simulatorOf(await openWorld(options, watch), options);
}

/** Throws if a fault names an unknown instance, or an instance has two faults in its books. */
function refuseUnknownInstances({ faults, bookFaults, instances }: SimulatorOptions): void {
  const ids = Array.from({ length: instances }, (_, instance) => instanceIdOf(instance));
  for (const { text, target } of [...faults, ...bookFaults]) {
    if (target === "*" || ids.includes(target)) continue;
    const near = nearestName(target, ids);
    throw new RunvaultError(
      "invalid_argument",
      `invalid fault ${JSON.stringify(text)}: there is no instance ${target}`,
      {
        hint: `${near === null ? "" : `Did you mean ${near}? `}The instances are ${ids.slice(0, 12).join(", ")}${ids.length > 12 ? ", …" : ""}.`,
      },
    );
  }
  for (const id of ids) bookFaultOf(bookFaults, id);
}

function spanOf(run: WorldRun): RunSpan {
  return { started: BigInt(run.started), ended: BigInt(run.ended), complete: BigInt(run.complete) };
}

function simulatorOf(world: World, options: SimulatorOptions): Simulator {
  const readers = new Map<string, Promise<TableReader>>();

  const reader = async (run: WorldRun, table: TableName): Promise<TableReader> => {
    const rendered = await renderedReader(run, table);
    return run.movedBy === undefined ? rendered : movedReader(rendered, table, run, run.movedBy);
  };

  const renderedReader = (run: WorldRun, table: TableName): Promise<TableReader> => {
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

  const faults = new InstanceFaults(options.faults);
  const begun = begunRuns(world, options);
  const lives = [...Map.groupBy(world.runs, (run) => run.instanceId)].map(
    ([instanceId, runs], instance) =>
      new InstanceLife({
        instanceId,
        given: runs,
        faults,
        begin: (run, at) => begun.begin(instance, run, at),
      }),
  );

  const lifeOf = (instanceId: string): InstanceLife => {
    const life = lives.find((candidate) => candidate.instanceId === instanceId);
    if (life !== undefined) return life;
    throw instanceNotFound(instanceId);
  };

  const runsOf = async (instanceId: string): Promise<readonly SeenRun[]> =>
    (await lifeOf(instanceId).at(options.clock())).runs;

  const runOf = async (ref: RunRef): Promise<SeenRun> => {
    const ended = lifeOf(ref.instanceId).ended(ref.runId);
    if (ended !== undefined) return ended;
    const runs = await runsOf(ref.instanceId);
    const found = runs.find(({ run }) => run.runId === ref.runId);
    if (found !== undefined) return found;
    throw runNotFound(
      ref,
      runs.map(({ run }) => run.runId),
    );
  };

  const factsOf = async (
    { run, known, going }: SeenRun,
    bounds: TimeBounds,
    { withHash = false, table: only }: FactsRequest = {},
    signal?: AbortSignal,
  ): Promise<StorageFacts> => {
    const facts = new Map<TableName, TableFacts>();
    for (const table of only === undefined ? tableNames : [only]) {
      const rows = await reader(run, table);
      const counted = await rows.count(bounds, known);
      const lines = () => rows.lines({ bounds, known, filters: [], limit: undefined, signal });
      facts.set(table, {
        rows: BigInt(counted.rows),
        first: counted.first,
        last: counted.last,
        schemaFingerprint: fieldsFingerprint(tableNamed(table)),
        final: !going,
        ...(withHash ? { rowHash: (await textRowHash(lines())).hash } : {}),
      });
    }
    return facts;
  };

  const entryOf = async (seen: SeenRun): Promise<RunEntry> => {
    const { run, known, going, ended, status } = seen;
    // rows are only ever added, so their number identifies their state
    const counted = known === undefined ? undefined : await factsOf(seen, {});
    const rows = tableNames.reduce(
      (sum, table) => sum + (counted?.get(table)?.rows ?? BigInt(run.tables[table].rows)),
      0n,
    );
    return {
      instanceId: run.instanceId,
      runId: run.runId,
      status,
      started: BigInt(run.started),
      ended,
      final: !going,
      storageVersion: `${world.key.slice(0, 12)}-${rows}`,
    };
  };

  const document = async (seen: SeenRun, kind: DocumentKind, signal?: AbortSignal): Promise<Uint8Array> => {
    const { run, known, ended, status } = seen;
    const common = {
      runId: run.runId,
      instanceId: run.instanceId,
      status,
      tsStarted: BigInt(run.started),
      tsEnded: ended ?? 0n,
    };
    switch (kind) {
      case "instance": {
        const runIds = (await runsOf(run.instanceId)).map((other) => other.run.runId);
        const latestRunId = runIds.at(-1)!;
        return documentBytes(
          HistoryInstanceSchema,
          create(HistoryInstanceSchema, { instanceId: run.instanceId, runIds, latestRunId }),
        );
      }
      case "run": {
        const { final, storageVersion } = await entryOf(seen);
        return documentBytes(
          RunSchema,
          create(RunSchema, { ...common, final, storageVersion: storageVersion ?? "" }),
        );
      }
      case "summary": {
        const currency = options.currencies[0]!;
        const totals = await summaryOf(run, currency, known, (table) => reader(run, table), signal);
        return documentBytes(
          SummarySchema,
          create(SummarySchema, {
            ...common,
            strategy: world.strategy,
            account: options.account,
            portfolio: options.portfolio,
            currency,
            ...totals,
          }),
        );
      }
      case "resources":
        return documentBytes(
          ListResourcesResponseSchema,
          create(ListResourcesResponseSchema, { resources: resourcesOf(run, world.instruments, options) }),
        );
      case "facts": {
        const facts = await factsOf(seen, {});
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

  const control = simulatedControl({
    world,
    options,
    lives,
    faults,
    rows: runRows(reader),
    count: async (seen) => new Map([...(await factsOf(seen, {}))].map(([table, { rows }]) => [table, rows])),
  });

  return {
    ...control,
    label: `simulator seed ${options.seed}`,
    async runs(instanceId) {
      return Promise.all((await runsOf(instanceId)).map(entryOf));
    },
    async facts(ref, bounds, signal, asked) {
      return factsOf(await runOf(ref), bounds, asked, signal);
    },
    async document(ref, kind, signal) {
      return document(await runOf(ref), kind, signal);
    },
    async *rows(request) {
      const { run, known } = await runOf(request);
      const { filters } = checkedRows(request);
      const { limit, signal } = request;
      const table = await reader(run, request.table);
      yield* table.lines({ bounds: request, known, filters, limit, signal });
    },
    span(ref) {
      const run = world.runs.find(
        ({ instanceId, runId }) => instanceId === ref.instanceId && runId === ref.runId,
      );
      if (run === undefined) throw runNotFound(ref);
      return spanOf(run);
    },
    growing: () => world.runs.filter(({ growing }) => growing).map(spanOf),
    async instances() {
      const states = await control.instances();
      return Promise.all(
        states.map(async (state) => ({
          ...state,
          runIds: (await runsOf(state.instanceId)).map(({ run }) => run.runId),
        })),
      );
    },
    async [Symbol.asyncDispose]() {
      // files are open only during calls, and the indexes are in memory
      readers.clear();
      await begun[Symbol.asyncDispose]();
    },
  };
}

function documentBytes<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>): Uint8Array {
  const json = toJson(schema, message, { useProtoFieldName: true, alwaysEmitImplicit: true });
  return Buffer.from(JSON.stringify(json));
}
