import { isDeepStrictEqual } from "node:util";
import type { ErrorCode } from "../../model/error.ts";
import { filterNames, type TableName, tableNamed, tableNames } from "../../model/profile/table.ts";
import { usualMediaTypes } from "./compile-rest.ts";
import { errorWords } from "./error-schema.ts";
import { pathText } from "./field-path-schema.ts";
import type {
  FactFields,
  NextPlace,
  Pages,
  RestProfile,
  RestRequest,
  RestRoute,
  RowForm,
  RunFields,
} from "./profile.ts";

/** Settings of requests by their keys in a profile, such as `parameters.from`. */
type Settings = Map<string, unknown>;

/** Defaults of a profile by the same keys; `none` if there is no default. */
const usual: Readonly<Record<string, unknown>> = {
  method: "GET",
  order: "ascending",
  largest_limit: "none",
  pages: "none",
  rows: "lines",
  "times.unit": "ns",
  "times.from": "inclusive",
  "times.to": "exclusive",
  "parameters.fixed": {},
};

/** A profile's REST part in the form of its file, with settings common to all tables under `rest`. */
export function restDocument(rest: RestProfile | undefined): {
  readonly rest: Record<string, unknown>;
  readonly tables: Readonly<Partial<Record<TableName, Record<string, unknown>>>>;
  readonly documents: Record<string, unknown>;
} {
  if (rest === undefined) return { rest: {}, tables: {}, documents: {} };
  const names = tableNames.filter((name) => rest.tables[name] !== undefined);
  const settings = new Map(names.map((name) => [name, routeSettings(name, rest.tables[name]!)]));
  const common = commonOf([...settings.values()]);
  return {
    rest: { ...(rest.base === "" ? {} : { base: rest.base }), ...nested(common) },
    tables: Object.fromEntries(
      names.map((name) => [
        name,
        { path: rest.tables[name]!.path, ...nested(without(settings.get(name)!, common)) },
      ]),
    ),
    documents: documentsOf(rest, common),
  };
}

/** Settings that are equal wherever they apply, and differ from the defaults. */
function commonOf(all: readonly Settings[]): Settings {
  const common: Settings = new Map();
  for (const key of new Set(all.flatMap((settings) => [...settings.keys()]))) {
    const values = all.filter((settings) => settings.has(key)).map((settings) => settings.get(key));
    const isSame = values.every((value) => isDeepStrictEqual(value, values[0]));
    if (isSame && !isDeepStrictEqual(values[0], usual[key] ?? "none")) common.set(key, values[0]);
  }
  return common;
}

function without(settings: Settings, common: Settings): Settings {
  return new Map(
    [...settings].filter(
      ([key, value]) => !isDeepStrictEqual(value, common.get(key) ?? usual[key] ?? "none"),
    ),
  );
}

/** Turns keys such as `parameters.from` into nested maps. */
function nested(settings: Settings): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const [key, value] of settings) {
    const steps = key.split(".");
    let at = result;
    for (const step of steps.slice(0, -1)) {
      at[step] ??= {};
      at = at[step] as Record<string, unknown>;
    }
    at[steps.at(-1)!] = value;
  }
  return result;
}

function routeSettings(name: TableName, route: RestRoute): Settings {
  const settings = requestSettings(route);
  const { filters } = tableNamed(name);
  for (const filter of filterNames) {
    if (filters.includes(filter))
      settings.set(`parameters.filters.${filter}`, route.parameters.filters[filter] ?? "none");
  }
  settings.set("pages", pagesDocument(route.pages));
  settings.set("rows", formDocument(route.rows));
  settings.set("order", route.order);
  settings.set("largest_limit", route.largestLimit ?? "none");
  return settings;
}

function requestSettings({ path, method, parameters, times }: RestRequest): Settings {
  const { instance, run, from, to, limit, fixed } = parameters;
  const settings: Settings = new Map();
  settings.set("method", method);
  // an id in the path is never sent again
  if (!path.includes("{instance}")) settings.set("parameters.instance", instance ?? "none");
  if (!path.includes("{run}")) settings.set("parameters.run", run ?? "none");
  settings.set("parameters.from", from ?? "none");
  settings.set("parameters.to", to ?? "none");
  settings.set("parameters.limit", limit ?? "none");
  settings.set("parameters.fixed", fixed);
  settings.set("times.unit", times.step === undefined ? times.unit : { [times.unit]: times.step });
  for (const key of ["from", "to"] as const) settings.set(`times.${key}`, times[key]);
  return settings;
}

function pagesDocument(pages: Pages): unknown {
  if (pages.by === "none") return "none";
  const { total, ...rest } = pages;
  return {
    ...rest,
    ...("next" in rest ? { next: placeDocument(rest.next) } : {}),
    ...(total === undefined ? {} : { total: placeDocument(total) }),
  };
}

function placeDocument(place: NextPlace): unknown {
  return "body" in place ? pathText(place.body) : { header: place.header };
}

function formDocument(form: RowForm): unknown {
  const isUsual = isDeepStrictEqual(form.mediaTypes, [usualMediaTypes[form.form]]);
  const types = isUsual ? {} : { media_types: [...form.mediaTypes] };
  if (form.form === "lines") return isUsual ? "lines" : { lines: true, ...types };
  if (form.path.length === 0 && isUsual) return "array";
  return { array: form.path.length === 0 ? [] : pathText(form.path), ...types };
}

function documentsOf({ documents }: RestProfile, common: Settings): Record<string, unknown> {
  const { instances, runs, facts, summary, resources, instance, given } = documents;
  const ids = ["parameters.instance", "parameters.run"];
  const request = (of: RestRequest, inherited: readonly string[]) => ({
    path: of.path,
    ...nested(without(requestSettings(of), new Map([...common].filter(([key]) => inherited.includes(key))))),
  });
  const bounds = [...ids, "parameters.from", "parameters.to", "times.unit", "times.from", "times.to"];
  return defined({
    instances: instances && {
      ...request(instances, []),
      list: listText(instances.list),
      id: instances.id.length === 0 ? undefined : pathText(instances.id),
      runs: fieldText(instances.runs),
      whole: instances.isWhole || undefined,
    },
    runs: runs && {
      ...request(runs, ["parameters.instance"]),
      list: listText(runs.list),
      ...runDocument(runs),
      whole: runs.isWhole || undefined,
    },
    storage: facts && { ...request(facts, bounds), ...factsDocument(facts) },
    summary: summary && request(summary, ids),
    resources: resources && request(resources, ids),
    instance: instance && {
      ...request(instance, ["parameters.instance"]),
      current_run: fieldText(instance.currentRun),
    },
    given: Object.keys(given).length === 0 ? undefined : given,
  });
}

function runDocument(runs: RunFields): object {
  return {
    id: pathText(runs.id),
    started: fieldText(runs.started),
    ended: fieldText(runs.ended),
    unit: runs.unit === "ns" ? undefined : runs.unit,
    status: fieldText(runs.status),
    words: runs.words,
    final: fieldText(runs.final),
    storage_version: fieldText(runs.storageVersion),
  };
}

function factsDocument(facts: FactFields): object {
  const own = Object.fromEntries(tableNames.map((name) => [name, name]));
  return {
    list: facts.list && listText(facts.list),
    table: facts.table.length === 0 ? undefined : pathText(facts.table),
    tables: isDeepStrictEqual(facts.tableWords, own) ? undefined : facts.tableWords,
    table_parameter: facts.tableParameter,
    rows: pathText(facts.rows),
    first: fieldText(facts.first),
    last: fieldText(facts.last),
    unit: facts.unit === "ns" ? undefined : facts.unit,
    final: fieldText(facts.final),
    heeds_bounds: facts.heedBounds,
  };
}

function fieldText(path: readonly string[] | undefined): unknown {
  return path === undefined ? undefined : pathText(path);
}

function listText(path: readonly string[]): unknown {
  return path.length === 0 ? [] : pathText(path);
}

/** Removes undefined values, also in nested maps. */
function defined(value: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, inside]) => inside !== undefined)
      .map(([key, inside]) => [
        key,
        typeof inside === "object" && inside !== null && !Array.isArray(inside)
          ? defined(inside as Record<string, unknown>)
          : inside,
      ]),
  );
}

/** The meanings of errors in a profile's words. */
export function errorDocument(rest: RestProfile | undefined): { readonly errors?: Record<string, unknown> } {
  if (rest === undefined) return {};
  const { code, codes } = rest.errors;
  const errors: Record<string, unknown> = code.length === 0 ? {} : { code: pathText(code) };
  for (const [word, meaning] of Object.entries(errorWords) as [string, ErrorCode][]) {
    const of = Object.keys(codes).filter((name) => codes[name] === meaning);
    if (of.length > 0) errors[word] = of.map((name) => (/^[45]\d\d$/.test(name) ? Number(name) : name));
  }
  return Object.keys(errors).length === 0 ? {} : { errors };
}
