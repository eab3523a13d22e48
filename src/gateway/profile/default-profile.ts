import type { ErrorCode } from "../../model/error.ts";
import { type Table, tables } from "../../model/profile/table.ts";
import { builtInContract } from "../contract.ts";
import type { Profile, RestDocuments, RestRequest, RestRoute } from "./profile.ts";
import { defaultName } from "./read-profile-tree.ts";

const { paths, parameters, mediaTypes, errors } = builtInContract;
const times = { unit: "ns", from: "inclusive", to: "exclusive" } as const;

/**
 * The built-in contract as a profile, from the tables that the code itself reads: what `extends: default` starts from. Its
 * rows are canonical as they come, so that it has no maps. Its RPC is the code's own, which no profile describes.
 */
export function defaultProfile(): Profile {
  return {
    name: defaultName,
    file: defaultName,
    headers: [],
    keys: [],
    rest: {
      base: "",
      documents: documents(),
      tables: Object.fromEntries(tables.map((table) => [table.name, route(table)])),
      errors: {
        code: ["error", "code"],
        codes: Object.assign({}, ...Object.values(errors)) as Record<string, ErrorCode>,
      },
    },
    rpc: undefined,
    maps: {},
    none: [],
    described: tables.map(({ name }) => name),
  };
}

function request(path: string, named: Partial<RestRequest["parameters"]> = {}): RestRequest {
  return {
    path,
    method: "GET",
    parameters: {
      instance: undefined,
      run: undefined,
      from: undefined,
      to: undefined,
      limit: undefined,
      filters: {},
      fixed: {},
      ...named,
    },
    times,
  };
}

function route(table: Table): RestRoute {
  const { instance, run, from, to, limit, filters } = parameters;
  return {
    ...request(paths.tables[table.name], {
      ...{ instance, run, from, to, limit },
      filters: Object.fromEntries(table.filters.map((name) => [name, filters[name]])),
    }),
    pages: { by: "none" },
    rows: { form: "lines", mediaTypes: [mediaTypes.rows] },
    order: "ascending",
    largestLimit: undefined,
  };
}

function documents(): RestDocuments {
  const { instance, run, from, to, table } = parameters;
  const ofRun = { instance, run };
  return {
    instances: { ...request(paths.instances), list: ["instances"], id: ["instance_id"], runs: ["run_ids"] },
    runs: {
      ...request(paths.runs, { instance }),
      list: ["runs"],
      id: ["run_id"],
      started: ["ts_started"],
      ended: ["ts_ended"],
      unit: "ns",
      status: ["status"],
      words: { RUNNING: "RUNNING", FINISHED: "FINISHED", FAILED: "FAILED" },
      final: ["final"],
      storageVersion: ["storage_version"],
    },
    facts: {
      ...request(paths.storage, { ...ofRun, from, to }),
      list: ["tables"],
      table: ["table"],
      tableWords: Object.fromEntries(tables.map(({ name }) => [name, name])),
      tableParameter: table,
      rows: ["rows"],
      first: ["min_ts_event"],
      last: ["max_ts_event"],
      unit: "ns",
      final: ["final"],
      heedBounds: true,
    },
    summary: request(paths.summary, ofRun),
    resources: request(paths.resources, ofRun),
    instance: { ...request(paths.instance.replace("{id}", "{instance}")), currentRun: ["currentRunId"] },
    given: {},
  };
}
