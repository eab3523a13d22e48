import { type TableName, tableNamed } from "../../../../model/profile/table.ts";
import { builtInContract } from "../../../contract.ts";
import { listNamed, type ParameterRole, parameterRole, tableOfName } from "./guessed-names.ts";
import type { KnownPath } from "./openapi-paths.ts";

/** A path with `{run}` and `{instance}` for ids, and its parameters' names by purpose. */
export interface AskablePath {
  readonly path: string;
  readonly names: Readonly<Partial<Record<ParameterRole, string>>>;
  /** The path as in the gateway's document, or a guess if there is none. */
  readonly known: KnownPath;
}

const holder = /\{([^}]*)\}/g;

/** The same path with runvault's placeholders, as far as its names show which id is which. */
export function askable(known: KnownPath, sole: "run" | "instance" = "run"): AskablePath {
  const { path, parameters } = known;
  const holders = [...path.matchAll(holder)].map(([, name]) => name!);
  const written = path.replace(holder, (text, name: string, at: number) => {
    const role = idRole(name) ?? idRole(path.slice(0, at).split("/").at(-2) ?? "");
    const id = role ?? (holders.length === 1 ? sole : undefined);
    return id === undefined ? text : `{${id}}`;
  });
  const names: Partial<Record<ParameterRole, string>> = {};
  for (const name of parameters) {
    const role = parameterRole(name);
    if (role !== undefined) names[role] ??= name;
  }
  return { path: written, names, known };
}

function idRole(name: string): "run" | "instance" | undefined {
  const role = parameterRole(name);
  return role === "run" || role === "instance" ? role : undefined;
}

/** Whether the path has no ids other than an instance's and a run's. */
export function isWhole({ path }: AskablePath): boolean {
  return !/\{(?!run\}|instance\})/.test(path);
}

/** Whether a path is about one run. */
function isOfRun({ path, names }: AskablePath): boolean {
  return path.includes("{run}") || names.run !== undefined;
}

/** A document's possible paths of lists of instances or runs: by name, or because other paths are below them. */
export function listPaths(paths: readonly KnownPath[], what: "instances" | "runs"): AskablePath[] {
  const all = paths.map((known) => askable(known, "instance"));
  const fit = all.filter(
    (one) => !isOfRun(one) && isWhole(one) && (what === "runs" || !one.path.includes("{")),
  );
  const named = fit.filter(({ path }) => listNamed(lastPart(path) ?? "") === what);
  const around = fit.filter(
    (one) => !named.includes(one) && all.some(({ path }) => path.startsWith(below(one.path, what))),
  );
  return [...named, ...around];
}

function below(path: string, what: "instances" | "runs"): string {
  return `${path.replace(/\/$/, "")}/{${what === "runs" ? "run" : "instance"}}`;
}

function lastPart(path: string): string | undefined {
  const last = path.replace(/\/$/, "").split("/").at(-1);
  return last === undefined || last.includes("{") ? undefined : last;
}

/** A document's possible paths to a table's rows. */
export function tablePaths(paths: readonly KnownPath[], table: TableName): AskablePath[] {
  return paths.map((known) => askable(known)).filter((one) => tableOfPath(one) === table);
}

/** The table that a path's last name means; undefined if none. */
export function tableOfPath(one: AskablePath): TableName | undefined {
  const parts = one.path.split("/").filter((part) => part !== "" && !part.startsWith("{"));
  const last = parts.at(-1) ?? "";
  // `/balances/history` means balances
  const table =
    tableOfName(last) ?? (/^(?:history|list|all)$/i.test(last) ? tableOfName(parts.at(-2) ?? "") : undefined);
  // a run's executions are its trades
  return (
    table ?? (/^executions/i.test(last) && isOfRun(one) && !one.path.endsWith("}") ? "fills" : undefined)
  );
}

/** A document's path to a single run: its summary. */
export function runPath(paths: readonly KnownPath[]): AskablePath | undefined {
  return paths.map((known) => askable(known)).find((one) => one.path.endsWith("{run}") && isWhole(one));
}

/** A document's possible paths to counts of a run's rows. */
export function countPaths(paths: readonly KnownPath[]): AskablePath[] {
  const name = /^(?:storage|counts?|holdings|tall(?:y|ies)|facts|inventory)$/i;
  return paths
    .map((known) => askable(known))
    .filter((one) => name.test(lastPart(one.path) ?? "") && isOfRun(one) && isWhole(one));
}

/** Usual paths of lists of instances. */
export function usualInstances(): AskablePath[] {
  const words = ["instances", "strategies", "bots", "desks", "models"];
  return [builtInContract.paths.instances, ...words.map((word) => `/${word}`)].map((path) =>
    askable({ path, parameters: [] }),
  );
}

/** Usual paths of an instance's runs; `list` is the path of instances, `name` what the gateway calls their ids. */
export function usualRuns(list: string, name: string): AskablePath[] {
  const words = ["runs", "sessions", "executions"];
  const contract = askable({
    path: builtInContract.paths.runs,
    parameters: [builtInContract.parameters.instance],
  });
  const inside = words.map((word) => askable({ path: `${list}/{instance}/${word}`, parameters: [] }));
  const beside = words.map((word): AskablePath => {
    const known = { path: `/${word}`, parameters: [name] };
    return { path: known.path, names: { instance: name }, known };
  });
  return list === builtInContract.paths.instances ? [contract] : [...inside, ...beside, contract];
}

/** A guess at the gateway's name for a list's ids: the field that has them, or the list's name in the singular. */
export function idName(list: string, id: readonly string[]): string {
  const field = id.at(-1) ?? "";
  if (!/^(?:|id|name|key|code)$/i.test(field)) return field;
  const last = lastPart(list) ?? "";
  return last.replace(/ies$/, "y").replace(/s$/, "");
}

/** Usual paths to a table's rows. `runs` is where runs were listed, `names` the gateway's names for ids. */
export function usualTables(
  table: TableName,
  runs: string | undefined,
  names: { readonly instance: string; readonly run: string },
): AskablePath[] {
  const { parameters } = builtInContract;
  const own = [parameters.instance, parameters.run, "from", "to", "limit"];
  const contract = askable({ path: tableNamed(table).path, parameters: own });
  const words = table === "fills" ? ["fills", "trades"] : [table];
  const bases = runs === undefined ? ["/runs/{run}"] : [`${runs}/{run}`];
  // runs listed below an instance often also have a path without it
  if (runs?.includes("{instance}")) bases.push(`/${lastPart(runs)}/{run}`);
  const { instance, run } = names;
  const found = words.flatMap((word) => [...bases.map((base) => `${base}/${word}`), `/${word}`]);
  return [
    contract,
    ...found.map((path): AskablePath => {
      const parametersOf = [instance, run, "from", "to", "limit"];
      return {
        path,
        names: { instance, run, from: "from", to: "to", limit: "limit" },

        known: { path, parameters: parametersOf },
      };
    }),
  ];
}
