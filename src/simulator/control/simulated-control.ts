import type { MessageInitShape } from "@bufbuild/protobuf";
import type { CatalogEntrySchema } from "../../gen/example/gateway/v1/runtime_service_pb.ts";
import type { ControlPlane, DaemonState, Gauge, ReadModel } from "../../model/control.ts";
import { RunvaultError } from "../../model/error.ts";
import { type InstanceState, instanceStateOf } from "../../model/instance-state.ts";
import { tableNames } from "../../model/profile/table.ts";
import { nearestName } from "../../model/text/nearest-name.ts";
import { instanceNotFound } from "../../model/usual-errors.ts";
import type { SeenRun } from "../seen-run.ts";
import type { SimulatorOptions } from "../simulator-options.ts";
import type { RunRows } from "../world/run-rows.ts";
import type { World } from "../world/world.ts";
import { type CatalogResource, catalogOf, catalogVersion } from "./catalog.ts";
import { type FallibleCapability, fallibleCapabilities, type InstanceFaults } from "./instance-fault.ts";
import type { InstanceLife, InstanceView } from "./instance-life.ts";
import { instanceLog } from "./instance-log.ts";
import { liveFeed } from "./live-feed.ts";
import { readModels } from "./read-models.ts";

const firstMetricsPort = 9100;
const version = "1.0.0";

export interface SimulatedControlOptions {
  readonly world: World;
  readonly options: SimulatorOptions;
  /** In the order of the instances' numbers. */
  readonly lives: readonly InstanceLife[];
  readonly faults: InstanceFaults;
  readonly rows: RunRows;
  /** Row counts of a run's tables, as visible now. */
  count(seen: SeenRun): Promise<ReadonlyMap<string, bigint>>;
}

type Why = "STARTING" | "UNREACHABLE" | "FAILED";

/** An instance's capabilities: available, intentionally missing, or missing for a reason. */
interface Abilities {
  readonly missing: ReadonlyMap<
    FallibleCapability,
    { readonly why: Why | undefined; readonly message: string }
  >;
}

/** The control and live planes of the simulated instances. */
export function simulatedControl(given: SimulatedControlOptions): ControlPlane {
  const { world, options, lives, faults, rows } = given;
  const { clock } = options;
  const models = readModels(rows, options, world.instruments);

  const lifeOf = (instanceId: string): InstanceLife => {
    const life = lives.find((candidate) => candidate.instanceId === instanceId);
    if (life !== undefined) return life;
    throw instanceNotFound(instanceId, "control");
  };

  const isUnreachable = (instanceId: string) => faults.has("runtime-unreachable", instanceId);
  const currentOf = ({ runs }: InstanceView): SeenRun => runs.at(-1)!;

  const stateOf = (life: InstanceLife, view: InstanceView): InstanceState => {
    const { instanceId } = life;
    const { desiredState, processState } = view;
    const runtimeState = isUnreachable(instanceId) ? "UNKNOWN" : view.runtimeState;
    return instanceStateOf({
      instanceId,
      project: { name: world.strategy, version },
      desiredState,
      processState,
      runtimeState,
      runtimeAnswers: runtimeState !== "UNKNOWN",
      takesSubscriptions:
        runtimeState === "RUNNING" && !faults.failedCapabilities(instanceId).includes("subscriptions"),
      currentRunId: currentOf(view).run.runId,
      metricsPort: firstMetricsPort + lives.indexOf(life),
    });
  };

  const daemonNow = (): DaemonState => {
    const reachable = !faults.has("daemon-unreachable", "*");
    const message = reachable ? "" : "the daemon cannot be reached";
    return { reachable, version: reachable ? version : "", message };
  };

  const reachDaemon = () => {
    const { reachable, message } = daemonNow();
    if (!reachable) throw new RunvaultError("unreachable", message);
  };

  const reachRuntime = (instanceId: string) => {
    if (isUnreachable(instanceId)) {
      throw new RunvaultError("unreachable", `the runtime of ${instanceId} cannot be reached`, {
        place: { instance: instanceId },
      });
    }
  };

  const abilitiesOf = async (life: InstanceLife, view: InstanceView): Promise<Abilities> => {
    const { desiredState, processState, runtimeState } = view;
    const missing = new Map<FallibleCapability, { why: Why | undefined; message: string }>();
    const lack = (name: FallibleCapability, why: Why | undefined, message: string) =>
      missing.set(name, { why, message });
    if (runtimeState !== "RUNNING") {
      const failed = runtimeState === "FAILED";
      const starting = desiredState === "RUNNING" && processState !== "CRASHED";
      const message = failed
        ? "the runtime failed"
        : starting
          ? "the runtime is starting"
          : "the runtime is stopped";
      for (const name of fallibleCapabilities)
        lack(name, failed ? "FAILED" : starting ? "STARTING" : undefined, message);
      return { missing };
    }
    if (!(await models.hasAccounts(currentOf(view)))) {
      lack("accounts", "STARTING", "the run has no equity yet");
      lack("portfolios", "STARTING", "the run has no equity yet");
    }
    for (const name of faults.failedCapabilities(life.instanceId))
      lack(name, "FAILED", `${name} failed in the runtime`);
    return { missing };
  };

  /** Throws if the instance lacks the capability now or always. */
  const need = async (life: InstanceLife, view: InstanceView, capability: FallibleCapability) => {
    const lack = (await abilitiesOf(life, view)).missing.get(capability);
    if (lack === undefined) return;
    const details = { place: { instance: life.instanceId } };
    const message = `${life.instanceId} has no ${capability}: ${lack.message}`;
    if (lack.why === "FAILED" && view.runtimeState === "RUNNING") {
      throw new RunvaultError("server_error", message, details);
    }
    throw new RunvaultError("capability_unavailable", message, {
      ...details,
      capability,
      hint: lack.why === "STARTING" ? "Try again when the runtime is up." : "Start the instance.",
    });
  };

  const resourcesOf = (seen: SeenRun): CatalogResource[] => catalogOf(seen.run, world.instruments, options);

  return {
    kind: "simulator",
    isLive: true,

    daemon: async () => daemonNow(),

    async instances() {
      const now = clock();
      const states = await Promise.all(lives.map(async (life) => stateOf(life, await life.at(now))));
      return states.sort((a, b) => (a.instanceId < b.instanceId ? -1 : 1));
    },

    async instance(instanceId) {
      const life = lifeOf(instanceId);
      return stateOf(life, await life.at(clock()));
    },

    async act(instanceId, action) {
      const life = lifeOf(instanceId);
      reachDaemon();
      await life.act(action, clock());
    },

    async log(instanceId, tail) {
      const life = lifeOf(instanceId);
      reachDaemon();
      return instanceLog(life, rows, clock).tail(tail, clock());
    },

    async followLog(instanceId, tail, signal) {
      const life = lifeOf(instanceId);
      reachDaemon();
      return instanceLog(life, rows, clock).follow(tail, signal);
    },

    async status(instanceId) {
      const life = lifeOf(instanceId);
      const now = clock();
      const { reachable, message: trouble } = daemonNow();
      const ofDaemon = { lifecycle: reachable, logs: reachable };
      const daemonErrors = reachable
        ? []
        : ["lifecycle", "logs"].map((capability) => ({
            capability,
            reason: "UNREACHABLE",
            message: trouble,
          }));
      if (isUnreachable(instanceId)) {
        const message = "the runtime cannot be reached";
        return {
          transport: { connected: false, kind: "simulator", tsLastSeen: 0n },
          engine: { state: "UNKNOWN", runId: "", tsStarted: 0n },
          capabilities: { history: true, ...ofDaemon },
          capabilityErrors: [
            ...["resources", ...fallibleCapabilities].map((capability) => ({
              capability,
              reason: "UNREACHABLE",
              message,
            })),
            ...daemonErrors,
          ],
        };
      }
      const view = await life.at(now);
      const { run } = currentOf(view);
      const { missing } = await abilitiesOf(life, view);
      return {
        transport: { connected: true, kind: "simulator", tsLastSeen: now },
        engine: { state: view.runtimeState, runId: run.runId, tsStarted: BigInt(run.started) },
        capabilities: {
          resources: true,
          history: true,
          ...ofDaemon,
          ...Object.fromEntries(fallibleCapabilities.map((name) => [name, !missing.has(name)])),
        },
        capabilityErrors: [
          ...[...missing].flatMap(([capability, { why, message }]) =>
            why === undefined ? [] : [{ capability, reason: why, message }],
          ),
          ...daemonErrors,
        ],
      };
    },

    async catalog(instanceId) {
      const life = lifeOf(instanceId);
      reachRuntime(instanceId);
      const seen = currentOf(await life.at(clock()));
      const resources = resourcesOf(seen);
      return {
        runtime: { instanceId, runId: seen.run.runId, catalogVersion: catalogVersion(resources) },
        resources: resources.map(entryOf),
      };
    },

    async query(instanceId, path) {
      const life = lifeOf(instanceId);
      reachRuntime(instanceId);
      const now = clock();
      const view = await life.at(now);
      const seen = currentOf(view);
      const [model = "", name, ...deeper] = path.split("/");
      const answer = (result: ReadModel["result"]): ReadModel => ({
        path,
        tsEvent: now,
        ...(result === undefined ? {} : { result }),
      });
      if (deeper.length > 0 || (name !== undefined && model !== "accounts" && model !== "portfolios")) {
        throw noPath(path);
      }
      switch (model) {
        case "resources":
          return answer({ case: "resources", value: { resources: resourcesOf(seen).map(entryOf) } });
        case "accounts": {
          await need(life, view, "accounts");
          const value = await models.accounts(seen);
          const accounts =
            value.accounts?.filter(({ account }) => name === undefined || account === name) ?? [];
          if (name !== undefined && accounts.length === 0) throw nothingNamed("account", name);
          return answer({ case: "accounts", value: { accounts } });
        }
        case "portfolios": {
          await need(life, view, "portfolios");
          const value = await models.portfolios(seen);
          const portfolios =
            value.portfolios?.filter(({ portfolio }) => name === undefined || portfolio === name) ?? [];
          if (name !== undefined && portfolios.length === 0) throw nothingNamed("portfolio", name);
          return answer({ case: "portfolios", value: { portfolios } });
        }
        case "events":
          await need(life, view, "events");
          return answer({ case: "events", value: await models.events(seen) });
        case "factors":
          // this project's read models have no capability; they exist while the runtime runs
          if (view.runtimeState !== "RUNNING") {
            throw new RunvaultError("capability_unavailable", `the runtime of ${instanceId} is not running`, {
              capability: "resources",
              hint: "Start the instance.",
            });
          }
          return answer({ case: "json", value: await models.factors(seen) });
        default:
          throw noPath(path);
      }
    },

    async feeds(instanceId, resourceKey) {
      const life = lifeOf(instanceId);
      reachRuntime(instanceId);
      const view = await life.at(clock());
      await need(life, view, "subscriptions");
      const { run } = currentOf(view);
      const found = resourcesOf(currentOf(view)).filter(
        ({ resource }) => resource.resourceKey === resourceKey,
      );
      if (found.length === 0) {
        throw new RunvaultError("resource_not_found", `there is no resource ${JSON.stringify(resourceKey)}`, {
          place: { instance: instanceId },
          hint: "Copy the resource key from GET /runtime/resources.",
        });
      }
      return found.map((resource) =>
        liveFeed(resource, { run, rows, clock, stopAt: () => life.stopOf(run.runId) }),
      );
    },

    async gauges(instanceId) {
      const life = lifeOf(instanceId);
      reachRuntime(instanceId);
      const view = await life.at(clock());
      const seen = currentOf(view);
      const counts = await given.count(seen);
      // Prometheus would rename `instance` and `instance_id`, which are the scraped target's
      const labels = { trading_instance: instanceId, run_id: seen.run.runId };
      const gauges: Gauge[] = [
        {
          name: "strategy_up",
          help: "1 while the strategy runtime runs.",
          samples: [{ labels, value: view.runtimeState === "RUNNING" ? 1 : 0 }],
        },
        {
          name: "strategy_run_rows",
          help: "History rows of the current run, by table.",
          samples: tableNames.map((table) => ({
            labels: { ...labels, table },
            value: Number(counts.get(table) ?? 0n),
          })),
        },
      ];
      if (await models.hasAccounts(seen)) {
        const { accounts = [] } = await models.accounts(seen);
        gauges.push({
          name: "strategy_equity",
          help: "Equity of an account: cash and positions at their marks, in its currency.",
          samples: accounts.map(({ account = "", currency = "", equity }) => ({
            labels: { ...labels, account, currency },
            value: Number(equity),
          })),
        });
      }
      return gauges;
    },
  };
}

function entryOf({ resource, contract }: CatalogResource): MessageInitShape<typeof CatalogEntrySchema> {
  const { resourceKey, symbol, venue, account, portfolio } = resource;
  return {
    resourceKey,
    label: `${contract.model} ${resourceKey}`,
    symbol,
    venue,
    account,
    portfolio,
    contract,
  };
}

const queryPaths = ["resources", "accounts", "portfolios", "events", "factors"];

function noPath(path: string): RunvaultError {
  const near = nearestName(path, queryPaths);
  return new RunvaultError("resource_not_found", `there is no query path ${JSON.stringify(path)}`, {
    hint: `${near === null ? "" : `Did you mean ${near}? `}The paths are ${queryPaths.join(", ")}.`,
  });
}

function nothingNamed(what: string, name: string): RunvaultError {
  return new RunvaultError("resource_not_found", `there is no ${what} ${JSON.stringify(name)}`);
}
