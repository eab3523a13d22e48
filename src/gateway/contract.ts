import type { ErrorCode } from "../model/error.ts";
import { type FilterName, filterNames, type TableName, tables } from "../model/table.ts";

/** Every name that the client speaks on REST: paths below the base address, parameters, media types, error codes. */
export interface GatewayContract {
  readonly paths: {
    /** `{id}` is replaced by the instance's id. */
    readonly instance: string;
    readonly instances: string;
    readonly runs: string;
    readonly resources: string;
    readonly storage: string;
    readonly summary: string;
    readonly tables: Readonly<Record<TableName, string>>;
  };
  readonly parameters: {
    readonly instance: string;
    readonly run: string;
    readonly from: string;
    readonly to: string;
    readonly limit: string;
    readonly filters: Readonly<Record<FilterName, string>>;
  };
  readonly mediaTypes: { readonly rows: string; readonly document: string };
  /** What an answer means: by status, then by the code in its error envelope. A pair that is not here goes by status. */
  readonly errors: Readonly<Record<number, Readonly<Record<string, ErrorCode>>>>;
}

/** The contract of proto/example: what is assumed of a gateway that nobody has described. */
export const builtInContract: GatewayContract = {
  paths: {
    instance: "/instances/{id}",
    instances: "/history/instances",
    runs: "/history/runs",
    resources: "/history/resources",
    storage: "/history/storage",
    summary: "/history/summary",
    tables: Object.fromEntries(tables.map(({ name, path }) => [name, path])) as Record<TableName, string>,
  },
  parameters: {
    instance: "instance",
    run: "run_id",
    from: "from",
    to: "to",
    limit: "limit",
    filters: Object.fromEntries(filterNames.map((name) => [name, name])) as Record<FilterName, string>,
  },
  mediaTypes: { rows: "application/x-ndjson", document: "application/json" },
  errors: {
    400: { invalid_argument: "refused" },
    401: { unauthenticated: "unauthenticated" },
    403: { permission_denied: "permission_denied" },
    404: {
      run_not_found: "run_not_found",
      instance_not_found: "instance_not_found",
      resource_not_found: "resource_not_found",
      route_not_found: "route_not_found",
      ERROR_CODE_INSTANCE_NOT_FOUND: "instance_not_found",
    },
    409: {
      history_identity_conflict: "history_identity_conflict",
      history_unavailable: "history_unavailable",
    },
    413: { limit_exceeded: "limit_exceeded" },
    429: { rate_limited: "rate_limited" },
    502: { history_unreachable: "history_unreachable", history_query_failed: "history_query_failed" },
  },
};
