import type { ErrorCode } from "../../model/error.ts";
import { type Table, type TableName, tables } from "../../model/profile/table.ts";
import { builtInContract } from "../contract.ts";
import type { RestProfile, RestRequest, RestRoute } from "./profile.ts";

const { paths, parameters, mediaTypes, errors } = builtInContract;
const times = { unit: "ns", from: "inclusive", to: "exclusive" } as const;

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

const { instance, run, from, to } = parameters;
const ofRun = { instance, run };

/** The built-in contract's routes in the form of a profile: the requests to a gateway without a profile. */
export const defaultRest = {
  base: "",
  documents: {
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
      tableParameter: parameters.table,
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
  },
  tables: Object.fromEntries(tables.map((table) => [table.name, route(table)])) as Record<
    TableName,
    RestRoute
  >,
  errors: {
    code: ["error", "code"],
    codes: Object.assign({}, ...Object.values(errors)) as Record<string, ErrorCode>,
  },
} satisfies RestProfile;
