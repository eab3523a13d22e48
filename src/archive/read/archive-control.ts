import { createHash } from "node:crypto";
import {
  type DescMessage,
  fromJson,
  type JsonValue,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import { InstanceSchema } from "../../gen/example/gateway/v1/instance_service_pb.ts";
import type { CatalogEntrySchema } from "../../gen/example/gateway/v1/runtime_service_pb.ts";
import { ListResourcesResponseSchema } from "../../gen/example/history/v1/history_service_pb.ts";
import type { ControlPlane, DoctorCheck } from "../../model/control.ts";
import { RunvaultError } from "../../model/error.ts";
import { type InstanceFacts, type InstanceState, instanceStateOf } from "../../model/instance-state.ts";
import { parseJson } from "../../model/outside-json.ts";
import { isTableName, tableNamed } from "../../model/profile/table.ts";
import type { HistorySource } from "../../model/source.ts";
import { type Nanoseconds, wallClock } from "../../model/time.ts";
import { instanceNotFound } from "../../model/usual-errors.ts";
import { rowMessage } from "../../row/wire/row-message.ts";
import type { Archive } from "../archive.ts";
import { runStates } from "../manifest/manifest.ts";
import {
  type DamagedManifest,
  type Overview,
  type RunOverview,
  RunOverviews,
} from "../manifest/run-overview.ts";

export interface ArchiveControlOptions {
  /** The source of runs' documents. */
  readonly source: HistorySource;
  /** The version shown as the archive's keeper in the inventory. */
  readonly version: string;
  /** Show the latest attempts instead of the proven parts, like the source. Default false. */
  readonly allowIncomplete?: boolean;
  readonly clock?: () => Nanoseconds;
}

type Entry = MessageInitShape<typeof CatalogEntrySchema>;
type Project = InstanceFacts["project"];

interface Instance {
  /** Oldest first. */
  readonly runs: readonly RunOverview[];
  readonly last: RunOverview;
  readonly damaged: readonly DamagedManifest[];
}

/** Most runs of an instance that the doctor names; an archive may have thousands. */
const mostNamed = 3;

/** Read models of running instances only, each behind the capability of the same name. */
const liveModels = ["accounts", "portfolios", "events"];

/**
 * The control plane of an archive: its instances, none of which is running, with the resources that their history
 * covers. Everything that needs a running instance is `capability_unavailable`.
 */
export function archiveControl(archive: Archive, options: ArchiveControlOptions): ControlPlane {
  const { source, version, allowIncomplete = false, clock = wallClock } = options;
  const overviews = new RunOverviews(archive, allowIncomplete);
  // an overview is a new object whenever its manifest changes
  const projects = new WeakMap<RunOverview, Project>();

  const instancesOf = ({ runs, damaged }: Overview): Map<string, Instance> => {
    const byInstance = Map.groupBy(runs, ({ instanceId }) => instanceId);
    return new Map(
      [...byInstance].map(([instanceId, own]) => [
        instanceId,
        {
          runs: own,
          last: own.at(-1)!,
          damaged: damaged.filter(({ folder }) => folder === archive.layout.instanceFolder(instanceId)),
        },
      ]),
    );
  };

  /**
   * The instance of a folder. If neither its name nor another run shows it, the name itself: only tokens for all
   * instances match that.
   */
  const instanceOf = (folder: string, runs: readonly RunOverview[]): string => {
    const { layout } = archive;
    const other = runs.find(({ instanceId }) => layout.instanceFolder(instanceId) === folder);
    return other?.instanceId ?? layout.idOf(folder) ?? folder;
  };

  const known = async (instanceId: string): Promise<Instance> => {
    const instance = instancesOf(await overviews.read()).get(instanceId);
    if (instance !== undefined) return instance;
    throw instanceNotFound(instanceId, "control");
  };

  const missing = (instanceId: string, capability: string): RunvaultError =>
    new RunvaultError("capability_unavailable", `${instanceId} has no ${capability}: this is an archive`, {
      place: { instance: instanceId },
      capability,
      hint: "Ask the gateway that runs the instance; what it recorded is under /history.",
    });

  const refuse = async (instanceId: string, capability: string): Promise<never> => {
    await known(instanceId);
    throw missing(instanceId, capability);
  };

  /** The resources of the last run with rows here; null if the gateway listed none. */
  const resourcesOf = async (instanceId: string, last: RunOverview): Promise<Entry[] | null> => {
    const bytes = await source.document({ instanceId, runId: last.runId }, "resources");
    if (bytes === null) return null;
    const { resources } = parseDocument(
      ListResourcesResponseSchema,
      bytes,
      "the stored resources are not a list of resources",
    );
    return resources.flatMap(({ resourceKey, table, symbol, venue, account, portfolio }): Entry[] => {
      if (!isTableName(table) || !last.tables.includes(table)) return [];
      const contract = {
        model: table,
        payloadSchema: rowMessage(tableNamed(table)).typeName,
        historyModel: table,
        visibility: "PUBLIC",
      };
      return [
        {
          resourceKey,
          label: `${table} ${resourceKey}`,
          symbol,
          venue,
          account,
          portfolio,
          contract,
        },
      ];
    });
  };

  /** What the instance ran, by its own document when its last run was archived; empty if unknown. */
  const projectOf = async (last: RunOverview): Promise<Project> => {
    const known = projects.get(last);
    if (known !== undefined) return known;
    try {
      const bytes = await source.document(last, "instance");
      const { project } =
        bytes === null
          ? {}
          : parseDocument(InstanceSchema, bytes, "the stored instance document is not an instance");
      const { name = "", version: ofProject = "" } = project ?? {};
      const found = { name, version: ofProject };
      projects.set(last, found);
      return found;
    } catch {
      // the doctor reports damaged files; an inventory without a name is better than none
      return unknownProject;
    }
  };

  const stateOf = async (instanceId: string, last: RunOverview): Promise<InstanceState> =>
    stoppedState(instanceId, last, await projectOf(last));

  const neededResources = async (instanceId: string, last: RunOverview): Promise<Entry[]> => {
    const resources = await resourcesOf(instanceId, last);
    if (resources !== null) return resources;
    throw new RunvaultError(
      "capability_unavailable",
      `the gateway of ${instanceId}/${last.runId} listed no resources`,
      {
        place: { instance: instanceId, run: last.runId },
        capability: "resources",
        hint: "GET /history/storage lists the tables of the run.",
      },
    );
  };

  return {
    kind: "archive",
    isLive: false,

    async daemon() {
      try {
        await overviews.read();
        return { reachable: true, version, message: "" };
      } catch (thrown) {
        return { reachable: false, version: "", message: told(thrown) };
      }
    },

    async checks() {
      const { damaged, runs } = await overviews.read();
      const manifests: DoctorCheck[] = damaged.map(({ file, folder, error }) => ({
        name: "manifest",
        instanceId: instanceOf(folder, runs),
        message: `${file}: ${told(error)}`,
      }));
      const files = await overviews.missingFiles();
      const tables = partialTables(runs);
      return [
        check("archive", await archive.refresh().then(() => "", told)),
        ...(manifests.length > 0 ? manifests : [check("manifest", "")]),
        ...(files.length > 0 ? files.map((file) => ({ name: "files", ...file })) : [check("files", "")]),
        ...(tables.length > 0 ? tables : [check("tables", "")]),
      ];
    },

    async keptRuns() {
      return { states: runStates, runs: (await overviews.read()).runs };
    },

    async instances() {
      const instances = [...instancesOf(await overviews.read())];
      return await Promise.all(instances.map(([instanceId, { last }]) => stateOf(instanceId, last)));
    },

    async instance(instanceId) {
      return await stateOf(instanceId, (await known(instanceId)).last);
    },

    act: (instanceId) => refuse(instanceId, "lifecycle"),
    log: (instanceId) => refuse(instanceId, "logs"),
    followLog: (instanceId) => refuse(instanceId, "logs"),
    feeds: (instanceId) => refuse(instanceId, "subscriptions"),
    gauges: (instanceId) => refuse(instanceId, "metrics"),

    async status(instanceId) {
      const { last, damaged } = await known(instanceId);
      const trouble: { capability: string; reason: string; message: string }[] = damaged.map(
        ({ file, error }) => ({
          capability: "history",
          reason: "FAILED",
          message: `${file}: ${told(error)}`,
        }),
      );
      let resources: Entry[] | null = null;
      try {
        resources = await resourcesOf(instanceId, last);
      } catch (thrown) {
        trouble.push({ capability: "resources", reason: "FAILED", message: told(thrown) });
      }
      return {
        transport: { connected: true, kind: "archive", tsLastSeen: last.committed },
        engine: { state: "STOPPED", runId: last.runId, tsStarted: last.started },
        capabilities: { resources: resources !== null, history: true },
        capabilityErrors: trouble,
      };
    },

    async catalog(instanceId) {
      const { last } = await known(instanceId);
      const resources = await neededResources(instanceId, last);
      const catalogVersion = createHash("sha256")
        .update(JSON.stringify(resources))
        .digest("hex")
        .slice(0, 12);
      return { runtime: { instanceId, runId: last.runId, catalogVersion }, resources };
    },

    async query(instanceId, path) {
      const { last } = await known(instanceId);
      const [model = "", ...deeper] = path.split("/");
      const isSingle = deeper.length === 1 && (model === "accounts" || model === "portfolios");
      if (liveModels.includes(model) && (deeper.length === 0 || isSingle)) throw missing(instanceId, model);
      if (path !== "resources") {
        throw new RunvaultError("resource_not_found", `there is no query path ${JSON.stringify(path)}`, {
          place: { instance: instanceId },
          hint: "An archive answers only the path `resources`.",
        });
      }
      const resources = await neededResources(instanceId, last);
      return { path, tsEvent: clock(), result: { case: "resources", value: { resources } } };
    },
  };
}

const unknownProject: Project = { name: "", version: "" };

/** Nothing runs here, by design. */
function stoppedState(instanceId: string, last: RunOverview, project: Project): InstanceState {
  return instanceStateOf({
    instanceId,
    project,
    desiredState: "STOPPED",
    processState: "STOPPED",
    runtimeState: "STOPPED",
    runtimeAnswers: true,
    takesSubscriptions: false,
    currentRunId: last.runId,
    metricsPort: 0,
  });
}

function parseDocument<Desc extends DescMessage>(
  schema: Desc,
  bytes: Uint8Array,
  trouble: string,
): MessageShape<Desc> {
  try {
    const json = parseJson(new TextDecoder("utf-8", { fatal: true }).decode(bytes)) as JsonValue;
    return fromJson(schema, json, { ignoreUnknownFields: true });
  } catch (cause) {
    throw new RunvaultError("server_error", trouble, { cause });
  }
}

const check = (name: string, message: string): DoctorCheck => ({ name, message });

/**
 * Incomplete tables, a check for each affected instance, naming its latest runs. Runs with nothing but accepted
 * problems do not count.
 */
function partialTables(runs: readonly RunOverview[]): DoctorCheck[] {
  const concerned = runs.filter(({ partial }) => partial.some(({ isAccepted }) => !isAccepted));
  return [...Map.groupBy(concerned, ({ instanceId }) => instanceId)].map(([instanceId, own]) => {
    const named = own.slice(-mostNamed).reverse();
    const texts = named.map(({ runId, partial }) => {
      const states = partial.map(
        ({ table, state, since, isAccepted }) =>
          `${table} ${state} since ${since}${isAccepted ? " (accepted as it is)" : ""}`,
      );
      return `${instanceId}/${runId} has ${states.join(", ")}`;
    });
    if (own.length > named.length) texts.push(`and ${own.length - named.length} more`);
    const message = `${texts.join("; ")}. Run \`runvault verify\` to see why, and archive these runs again.`;
    return { name: "tables", instanceId, message };
  });
}

/** The error in words for clients; the message of a bug is only for the server's owner. */
function told(thrown: unknown): string {
  const error = RunvaultError.from(thrown);
  if (error.code === "internal") return "the archive failed";
  // system messages contain full paths
  return error.code.startsWith("storage_") ? `the archive cannot be read (${error.code})` : error.message;
}
