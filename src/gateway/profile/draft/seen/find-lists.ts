import type { RunRef } from "../../../../model/source.ts";
import { jsonOf, type Told } from "../../check/asker.ts";
import { leavesOf, nodeAt } from "../../check/json-node.ts";
import { scalarText } from "../../check/sample.ts";
import { type DraftLine, indented, lineText, pathScalar, scalar, someOf, unsure } from "../draft-line.ts";
import { parameterRole } from "./guessed-names.ts";
import { type AskablePath, idName, listPaths, usualInstances, usualRuns } from "./known-paths.ts";
import type { KnownPath } from "./openapi-paths.ts";
import { runFieldLines, runFieldsIn, statusOf } from "./run-fields.ts";
import { askableId, type SeenList, seenList } from "./seen-list.ts";

/** Requests a possible list; undefined if nothing answers. */
export interface ListAsker {
  ask(at: AskablePath, ids: { readonly instance?: string }): Promise<Told | undefined>;
}

export interface FoundLists {
  /** Runs whose rows may be requested, the most likely first. */
  readonly runs: readonly RunRef[];
  /** The profile's `documents`, each guess with its reason. */
  readonly lines: readonly string[];
  /** Where runs were listed. */
  readonly runsPath: string | undefined;
  /** The gateway's names for ids, as far as lists show them. */
  readonly names: { readonly instance: string; readonly run: string };
  /** Paths that were tried for lists. */
  readonly asked: readonly string[];
}

/** Most instances whose runs are requested, to find a finished one. */
const mostInstances = 3;

interface Listing {
  readonly at: AskablePath;
  readonly list: SeenList;
}

interface ListedRun extends RunRef {
  readonly status: ReturnType<typeof statusOf>;
}

/** Where lists of instances and runs may be. */
export interface ListPlaces {
  readonly instances: readonly AskablePath[];
  /** What other paths call instances. */
  readonly named: readonly string[];
  /** `list` is where instances were found, `name` the gateway's name for an instance's id. */
  runs(list: string | undefined, name: string): readonly AskablePath[];
}

export interface Listings {
  readonly instances: Listing | undefined;
  /** Where instances have their runs' ids. */
  readonly inside: readonly string[] | undefined;
  readonly runs: Listing | undefined;
  /** Runs whose rows may be requested: a finished one first, a growing one last. */
  readonly known: readonly RunRef[];
  readonly instanceName: string;
  readonly asked: readonly string[];
}

/** Looks for runs in lists, or in those of the wanted instance. */
export async function findListings(
  asker: ListAsker,
  places: ListPlaces,
  wanted?: RunRef | undefined,
): Promise<Listings> {
  const asked: string[] = [];
  const instances = await findInstances(asker, places, asked);
  const inside = instances === undefined ? undefined : runsInside(instances.list);
  const name = instances === undefined ? "instance" : idName(instances.at.path, instances.list.id);
  const listed = instances?.list.entries.map(({ id }) => id) ?? [];
  const ids = wanted === undefined ? listed.slice(0, mostInstances) : [wanted.instanceId];
  const runs = await findRuns(asker, places.runs(instances?.at.path, name), ids, asked);
  const known = [...(runs?.known ?? []), ...(inside?.runs ?? [])].sort((a, b) => rank(a) - rank(b));
  return {
    instances,
    inside: inside?.path,
    runs,
    known: unique(known.map(({ instanceId, runId }) => ({ instanceId, runId }))),
    instanceName: name,
    asked,
  };
}

/** Finds a gateway's lists over REST, in its document or at the usual paths. */
export async function findLists(
  asker: ListAsker,
  paths: readonly KnownPath[] | undefined,
  wanted: RunRef | undefined,
): Promise<FoundLists> {
  const places: ListPlaces = {
    instances: paths === undefined ? usualInstances() : listPaths(paths, "instances"),
    named: instanceNames(paths),
    runs: (list, name) =>
      paths === undefined ? usualRuns(list ?? "/instances", name) : listPaths(paths, "runs"),
  };
  const { instances, inside, runs, known, instanceName, asked } = await findListings(asker, places, wanted);
  // a list of all runs is not a list of one instance's runs
  const isListed = runs !== undefined && takesInstance(runs.at);
  // the user must describe a documented list that came empty
  const isOpen = wanted === undefined && openLines(paths, "runs").length > 0;
  return {
    runs: wanted === undefined ? known : [wanted],
    lines: [
      ...(instances === undefined ? openLines(paths, "instances") : instanceLines(instances, inside)),
      ...(isListed ? runLines(runs) : inside === undefined ? openLines(paths, "runs") : []),
      ...(isListed || inside !== undefined || isOpen ? [] : givenLines(known, wanted)),
    ],
    runsPath: runs?.at.path,
    names: {
      instance: runs?.at.names.instance ?? instanceName,
      run: runs === undefined ? "run" : idName(runs.at.path, runs.list.id),
    },
    asked,
  };
}

async function findInstances(
  asker: ListAsker,
  { instances, named }: ListPlaces,
  asked: string[],
): Promise<Listing | undefined> {
  for (const at of instances) {
    asked.push(at.path);
    const told = await asker.ask(at, {});
    const list = told?.status === 200 ? seenList(jsonOf(told), "instance", named) : undefined;
    if (list !== undefined) return { at, list };
  }
  return undefined;
}

/** The document's names for an instance, in paths and parameters. */
function instanceNames(paths: readonly KnownPath[] | undefined): string[] {
  const all = (paths ?? []).flatMap(({ path, parameters }) => [
    ...[...path.matchAll(/\{([^}]*)\}/g)].map(([, name]) => name!),
    ...parameters,
  ]);
  return all.filter((name) => parameterRole(name) === "instance");
}

/** The runs at the first of these paths that lists any. */
async function findRuns(
  asker: ListAsker,
  candidates: readonly AskablePath[],
  instances: readonly string[],
  asked: string[],
): Promise<(Listing & { readonly known: readonly ListedRun[] }) | undefined> {
  for (const at of candidates) {
    if (takesInstance(at) && instances.length === 0) continue;
    asked.push(at.path);
    const known: ListedRun[] = [];
    let first: SeenList | undefined;
    for (const instance of takesInstance(at) ? instances : [undefined]) {
      const told = await asker.ask(at, instance === undefined ? {} : { instance });
      // a path that does not exist for one instance will not exist for another
      if (told?.status !== 200) break;
      const list = seenList(jsonOf(told), "run", at.names.run === undefined ? [] : [at.names.run]);
      if (list === undefined) continue;
      first ??= list;
      known.push(...runsOf(list, instance));
      if (known.some(({ status }) => status === "FINISHED")) break;
    }
    if (first !== undefined) return { at, list: first, known };
  }
  return undefined;
}

function takesInstance({ path, names }: AskablePath): boolean {
  return path.includes("{instance}") || names.instance !== undefined;
}

function runsOf(list: SeenList, instance: string | undefined): ListedRun[] {
  const fields = runFieldsIn(list);
  return list.entries.flatMap(({ id, node }): ListedRun[] => {
    const instanceId = instance ?? instanceIn(node);
    return instanceId === undefined ? [] : [{ instanceId, runId: id, status: statusOf(node, fields) }];
  });
}

/** The instance in an entry of a list of all runs. */
function instanceIn(node: SeenList["entries"][number]["node"]): string | undefined {
  if (node.kind !== "object") return undefined;
  const found = [...leavesOf(node)].find(([path]) => parameterRole(path.at(-1)!) === "instance");
  return askableId(found?.[1]);
}

/** The run ids in the entries of a list of instances. */
function runsInside({
  entries,
}: SeenList): { readonly path: readonly string[]; readonly runs: readonly ListedRun[] } | undefined {
  const first = entries[0]?.node;
  if (first?.kind !== "object") return undefined;
  const found = [...leavesOf(first)].find(
    ([path, node]) =>
      node.kind === "array" &&
      parameterRole(path.at(-1)!) === "run" &&
      node.items.every((item) => scalarText(item) !== undefined),
  );
  if (found === undefined) return undefined;
  const [path] = found;
  const runs = entries.flatMap(({ id, node }) => {
    const list = nodeAt(node, path);
    return (list?.kind === "array" ? list.items : []).flatMap((item): ListedRun[] => {
      const runId = askableId(item);
      return runId === undefined ? [] : [{ instanceId: id, runId, status: undefined }];
    });
  });
  return { path, runs };
}

function rank({ status }: ListedRun): number {
  return status === "FINISHED" ? 0 : status === "FAILED" ? 1 : status === undefined ? 2 : 3;
}

function unique(runs: readonly RunRef[]): RunRef[] {
  return [...new Map(runs.map((run) => [`${run.instanceId}\0${run.runId}`, run])).values()];
}

function instanceLines({ at, list }: Listing, runs: readonly string[] | undefined): string[] {
  const lines: DraftLine[] = [pathLine(at, list), { key: "list", value: pathScalar(list.path), why: "" }];
  if (list.id.length > 0) lines.push({ key: "id", value: pathScalar(list.id), why: list.why });
  if (runs !== undefined)
    lines.push({ key: "runs", value: pathScalar(runs), why: "by its name: the ids of its runs" });
  return ["instances:", ...indented(lines.map(lineText))];
}

function runLines({ at, list }: Listing): string[] {
  const name = at.path.includes("{instance}") ? undefined : at.names.instance;
  const lines: DraftLine[] = [
    pathLine(at, list),
    ...(name === undefined
      ? []
      : [{ key: "parameters", value: `{ instance: ${scalar(name)} }`, why: "by its name" }]),
    { key: "list", value: pathScalar(list.path), why: "" },
    { key: "id", value: pathScalar(list.id), why: list.why },
    ...runFieldLines(list, runFieldsIn(list)),
  ];
  return ["runs:", ...indented(lines.map(lineText))];
}

function pathLine({ path }: AskablePath, { entries }: SeenList): DraftLine {
  return {
    key: "path",
    value: scalar(path),
    why: `it lists ${someOf(
      entries.map(({ id }) => id),
      60,
    )}`,
  };
}

/** A list in the gateway's document that came empty. */
function openLines(paths: readonly KnownPath[] | undefined, what: "instances" | "runs"): string[] {
  const [at] = paths === undefined ? [] : listPaths(paths, what);
  if (at === undefined) return [];
  const why = "by its path; no entry was seen: say where the list and the ids are";
  const line = `${what}: { path: ${scalar(at.path)}, list: ${unsure(undefined)}, id: ${unsure(undefined)} }`;
  return [`${line}  # ${why}`];
}

function givenLines(known: readonly RunRef[], wanted: RunRef | undefined): string[] {
  const runs = unique([...(wanted === undefined ? [] : [wanted]), ...known]);
  if (runs.length === 0)
    return [`given: ${unsure(undefined)}  # no list of runs was found: name them, \`{ INSTANCE: [RUN] }\``];
  const byInstance = Map.groupBy(runs, ({ instanceId }) => instanceId);
  const pairs = [...byInstance].map(
    ([instance, of]) => `${scalar(instance)}: [${of.map(({ runId }) => scalar(runId)).join(", ")}]`,
  );
  return [
    `given: { ${pairs.join(", ")} }  # no list of an instance's runs was found: name all the runs that you want`,
  ];
}
