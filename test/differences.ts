import type { Difference } from "./difference-check.ts";

const inventory =
  "{/instances,/instances/:id,InstanceService/ListInstances,InstanceService/GetInstance}" as const;
const status = "{/runtime/status,RuntimeService/GetStatus}" as const;
const query = "{/runtime/query/*,RuntimeService/Query}" as const;
const rows = "/history/**";

/** What differs between two servers of one source already, and says nothing of an archive. */
export const varying: readonly Difference[] = [
  {
    route: "{/health,GatewayService/GetHealth}",
    field: "tsNow",
    reason: "The time of the answer.",
  },
  {
    route: "GatewayService/GetInfo",
    field: "tsStarted",
    reason: "When the server was started.",
  },
  {
    route: status,
    field: "transport.tsLastSeen",
    reason: "A clock: now for what runs, the commit for what was archived.",
  },
  {
    route: query,
    field: "tsEvent",
    reason: "The time of the answer.",
  },
  {
    route: "/discovery",
    field: "*.targets.0",
    reason: "The server's own port.",
  },
  {
    route: "DiscoveryService/ListTargets",
    field: "targets.*.address",
    reason: "The server's own port.",
  },
  {
    route: "/metrics",
    field: "samples.{process_**,nodejs_**,runvault_http_request_duration_seconds**}",
    reason: "What the process uses and how long its answers take.",
  },
];

/** All that an archive answers otherwise than the gateway it was made from; at most twenty. */
export const differences: readonly Difference[] = [
  {
    route: inventory,
    field: "**project.{name,version}",
    value: '""',
    reason: "No history interface tells which project an instance runs, so an archive never learns it.",
  },
  {
    route: inventory,
    field: "**endpoints.{metricsPort,websocket}",
    value: "{0,false}",
    reason: "Nothing runs in an archive that could be measured or subscribed to.",
  },
  {
    route: inventory,
    field: "**{desiredState,processState,runtimeState,instanceState}",
    value: '"STOPPED"',
    phase: "running",
    reason: "Nothing runs in an archive, and nothing is meant to.",
  },
  {
    route: status,
    field: "engine.state",
    value: '"STOPPED"',
    phase: "running",
    reason: "Nothing runs in an archive.",
  },
  {
    route: status,
    field: "capabilities.{lifecycle,logs,subscriptions,accounts,portfolios,events}",
    value: "false",
    reason: "An archive holds recorded rows: it controls nothing, has no log and no live values.",
  },
  {
    route: "{/instances,InstanceService/ListInstances}",
    field: "daemon.version",
    reason: "The version of what keeps the instances, which here is the archive's own server.",
  },
  {
    route: "{/doctor,GatewayService/RunDoctor}",
    field: "checks.*.{name,ok,message}",
    isMore: true,
    reason:
      "An archive also checks its folder, manifests, files and tables; the gateway's own checks are the same.",
  },
  {
    route: `{/runtime/status,RuntimeService/GetStatus,GatewayService/GetInfo,HistoryService/GetDatasource,DatasourceService/ListDatasources}`,
    field: "{name,kind,transport.kind,datasources.*.kind}",
    value: '{"archive","runvault serve"}',
    reason: "Says what it is, for people.",
  },
  {
    route: "{/runtime/resources,/runtime/query/*,RuntimeService/ListResources,RuntimeService/Query}",
    field: "**contract.{deliveryModel,replayPolicy,mergeModel,dropPolicy}",
    value: '""',
    reason: "How live values are delivered is no part of history, and an archive delivers none.",
  },
  {
    route: "{/runtime/resources,RuntimeService/ListResources}",
    field: "runtime.catalogVersion",
    reason: "An opaque mark of the catalog's content, which is another without what is said of delivery.",
  },
  {
    route: "{/instances/:id/logs,InstanceService/GetLogs}",
    field: "outcome",
    value: "{409,400 failed_precondition} ERROR_CODE_CAPABILITY_UNAVAILABLE",
    reason: "No history interface gives an instance's log.",
  },
  {
    route:
      "{/instances/:id/start,/instances/:id/stop,/instances/:id/restart,InstanceService/StartInstance,InstanceService/StopInstance,InstanceService/RestartInstance}",
    field: "outcome",
    value: "{409,400 failed_precondition} ERROR_CODE_CAPABILITY_UNAVAILABLE",
    reason: "An archive runs no instances, so none can be started or stopped.",
  },
  {
    route: "/instances/:id/ws",
    field: "outcome",
    value: "409 ERROR_CODE_CAPABILITY_UNAVAILABLE",
    phase: "running",
    reason: "An archive has no live values to subscribe to.",
  },
  {
    route: query,
    field: "outcome",
    value: "{409,400 failed_precondition} ERROR_CODE_CAPABILITY_UNAVAILABLE",
    phase: "running",
    reason: "Accounts, portfolios and recent events are read models of a running instance.",
  },
  {
    route: query,
    field: "outcome",
    value: "{404,404 not_found} ERROR_CODE_RESOURCE_NOT_FOUND",
    reason: "An archive cannot know which read models a project added.",
  },
  {
    route: query,
    field: "error.{message,hint}",
    reason:
      "Text for operators tells that this is an archive, and which paths it has; the codes are the same.",
  },
  {
    route: "/metrics/instances/:port",
    field: "outcome",
    value: "404 ERROR_CODE_RESOURCE_NOT_FOUND",
    reason: "Nothing runs in an archive that has metrics.",
  },
  {
    route: "{/discovery,DiscoveryService/ListTargets}",
    field: "**",
    value: "",
    reason: "There are no instances to scrape in an archive, only the service itself.",
  },
  {
    route: rows,
    field: "headers.{vary,runvault-rows,content-type}",
    reason:
      "Beyond the gateway: rows come as CSV or Arrow to clients that ask for it by name, with their number where it is known.",
  },
  {
    route: "GatewayService/GetInfo",
    field: "features.*",
    reason: "An archive does not offer the WebSocket, for it has nothing live.",
  },
];
