import type { DescMethodUnary } from "@bufbuild/protobuf";
import { InstanceService } from "../gen/example/gateway/v1/instance_service_pb.ts";
import { HistoryService } from "../gen/example/history/v1/history_service_pb.ts";
import type { ErrorCode } from "../model/error.ts";
import { type FilterName, filterNames, type TableName, tables } from "../model/profile/table.ts";

/** Every name in the client's REST requests: paths below the base address, parameters, media types, error codes. */
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
    readonly withChecksum: string;
    readonly table: string;
    readonly filters: Readonly<Record<FilterName, string>>;
  };
  readonly mediaTypes: { readonly rows: string; readonly document: string };
  /** The meaning of errors, by status and then by the code in the envelope. For unknown pairs the status decides. */
  readonly errors: Readonly<Record<number, Readonly<Record<string, ErrorCode>>>>;
}

/** The contract of proto/example: the default for a gateway without a profile. */
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
    withChecksum: "with_checksum",
    table: "table",
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
      history_incomplete: "incomplete",
    },
    413: { limit_exceeded: "limit_exceeded" },
    421: { misdirected: "misdirected" },
    429: { rate_limited: "rate_limited" },
    502: { history_unreachable: "history_unreachable", history_query_failed: "history_query_failed" },
  },
};

/** Every name in the client's RPC calls: methods, whose messages name the fields, and error codes. */
export interface RpcContract extends RpcRules {
  readonly methods: {
    readonly datasource: typeof HistoryService.method.getDatasource;
    readonly instances: typeof HistoryService.method.listInstances;
    readonly runs: typeof HistoryService.method.listRuns;
    readonly resources: typeof HistoryService.method.listResources;
    readonly storage: typeof HistoryService.method.getStorageFacts;
    readonly summary: typeof HistoryService.method.getSummary;
    readonly instance: typeof InstanceService.method.getInstance;
    readonly preview: DescMethodUnary;
    /** Tables with their own method; `preview` serves the others, and these if their method is missing. */
    readonly tables: Readonly<Partial<Record<TableName, DescMethodUnary>>>;
  };
}

/** Rules of RPC that do not depend on the methods. */
export interface RpcRules {
  /** Most bytes of a page of rows. */
  readonly pageBytes: number;
  /** The meaning of a history code in the details of an error. It wins over the protocol's code. */
  readonly historyCodes: Readonly<Record<string, ErrorCode>>;
  /** The meaning of a Connect code alone. */
  readonly codes: Readonly<Record<string, ErrorCode>>;
  /** Connect codes that, for a request with a page token, say that the token is no longer accepted. */
  readonly tokenRefusals: ReadonlySet<string>;
}

/** The contract of proto/example over RPC. */
export const builtInRpcContract: RpcContract = {
  methods: {
    datasource: HistoryService.method.getDatasource,
    instances: HistoryService.method.listInstances,
    runs: HistoryService.method.listRuns,
    resources: HistoryService.method.listResources,
    storage: HistoryService.method.getStorageFacts,
    summary: HistoryService.method.getSummary,
    instance: InstanceService.method.getInstance,
    preview: HistoryService.method.previewTable,
    tables: {
      bars: HistoryService.method.listMarketBars,
      equity: HistoryService.method.listPortfolioSeries,
      metrics: HistoryService.method.listPortfolioMetrics,
    },
  },
  pageBytes: 4 * 1024 * 1024,
  // on REST each has one status, and means the same
  historyCodes: Object.assign({}, ...Object.values(builtInContract.errors)) as Record<string, ErrorCode>,
  codes: {
    // this client did not cancel, so something between did: a retry may help
    canceled: "server_error",
    unknown: "server_error",
    // the client built the request, so the user's command is not at fault
    invalid_argument: "refused",
    deadline_exceeded: "timeout",
    not_found: "resource_not_found",
    already_exists: "refused",
    permission_denied: "permission_denied",
    // mostly a quota; if it is a page's size, the next attempt asks for less
    resource_exhausted: "rate_limited",
    failed_precondition: "refused",
    aborted: "server_error",
    // like the contract's own limit_exceeded: a page with fewer rows may fit
    out_of_range: "limit_exceeded",
    unimplemented: "route_not_found",
    internal: "server_error",
    unavailable: "server_error",
    data_loss: "server_error",
    unauthenticated: "unauthenticated",
  },
  tokenRefusals: new Set(["invalid_argument", "failed_precondition", "out_of_range", "aborted", "not_found"]),
};
