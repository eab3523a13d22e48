// The rooms of src/ in the order in which they may import each other: a room sees only rooms of an earlier rank, and of
// their folders only the doors.
const ranks = [
  ["model", "gen"],
  ["row"],
  ["duckdb"],
  ["gateway", "simulator", "archive"],
  ["serve", "extract", "analytics"],
  ["faults"],
  ["report"],
  ["pipeline"],
  ["cli", "library"],
];

/**
 * The doors of each folder: the files that other rooms may import, and `within`, those that only other folders of the
 * same room may. Everything else is the folder's own. A new door is a decision: look first whether an old one can serve.
 */
const folders = {
  analytics: {
    doors: ["analysed-tables", "figure", "shortfall"],
    within: ["double-view-name", "require-proven", "run-views"],
  },
  "analytics/arrow": { doors: ["arrow-ipc", "arrow-type"], within: ["arrow-batch", "string-pieces"] },
  "analytics/export": {
    doors: ["export", "export-file", "export-format", "export-selection", "export-session", "parquet-forms"],
    within: ["file-ending", "parquet-copy"],
  },
  "analytics/files": {
    doors: ["archive-files", "committed-parquet", "typed-parquet"],
    within: ["present-files"],
  },
  "analytics/instruments": {
    doors: ["instrument", "read-instruments"],
    within: ["resolve-instruments", "run-facts", "write-instrument-values"],
  },
  "analytics/metrics": { doors: ["measure-runs", "metrics-document"], within: [] },
  "analytics/section": {
    doors: ["macro-rows", "metrics-options", "read-benchmark", "read-rates", "section"],
    within: ["total-views"],
  },
  "analytics/performance": {
    doors: [],
    within: [
      "benchmark-prices",
      "drawdowns-section",
      "monthly-section",
      "performance-section",
      "rolling-section",
      "trades-section",
    ],
  },
  "analytics/execution": { doors: [], within: ["execution-section"] },
  "analytics/factors": { doors: [], within: ["factors-section"] },
  "analytics/query": {
    doors: ["query", "query-timed-out", "view-columns"],
    within: ["limit", "open-views", "query-views"],
  },
  "analytics/sql": { doors: [], within: ["macro-names", "macros", "unclear-fault"] },
  "analytics/trades": {
    doors: ["exposure", "fill-columns", "run-trades", "trade"],
    within: [
      "average-cost",
      "bar-columns",
      "fifo-position",
      "read-fills",
      "trade-figures",
      "trade-tables",
      "traded-tables",
      "valuation",
      "walk-trades",
      "write-trade-tables",
    ],
  },
  "analytics/against": { doors: ["against-report", "compare-runs", "match-runs"], within: [] },
  "analytics/reconcile": {
    doors: ["reconcile", "reconcile-report"],
    within: ["account-key", "account-rows", "books-source", "find-fill-order", "proven-tables"],
  },
  "analytics/render": {
    doors: ["aligned-table", "cell", "figure-text", "format", "render"],
    within: ["unique-names"],
  },
  archive: { doors: ["archive", "bucket", "layout", "lock", "sources", "types-now"], within: [] },
  "archive/convert": {
    doors: [
      "convert-segments",
      "convert-together",
      "drift",
      "duckdb-form",
      "line-by-line-conversion",
      "parquet-look",
    ],
    within: [],
  },
  "archive/diff": { doors: ["diff"], within: [] },
  "archive/manifest": {
    doors: [
      "acceptance",
      "attempt-text",
      "former-files",
      "found-runs",
      "manifest",
      "manifest-cache",
      "manifest-files",
      "served-table",
      "table-view",
      "through-words",
    ],
    within: ["manifest-paths", "parse-manifest", "run-overview"],
  },
  "archive/read": {
    doors: [
      "archive-control",
      "archive-source",
      "lost-files",
      "readings",
      "set-aside",
      "superseded-generation",
      "whole-files",
    ],
    within: [],
  },
  "archive/storage": {
    doors: ["archive-file", "damage-of", "fsync-files", "own-names", "permissions", "real-folder", "store"],
    within: [
      "file-hash",
      "folder-store",
      "local-files",
      "names-in",
      "remove-leftovers",
      "scratch-area",
      "sizes-below",
    ],
  },
  "archive/upkeep": {
    doors: ["collect-garbage", "garbage", "old-runs", "remove", "replace-links"],
    within: ["remove-own", "unnamed-files"],
  },
  "archive/verify": {
    doors: ["verify", "verify-places", "verify-report", "verify-sample"],
    within: ["verify-files", "verify-manifest"],
  },
  "archive/write": {
    doors: [
      "accept-table",
      "commit",
      "held-tables",
      "journal",
      "pending-work",
      "refuse-fetched-work",
      "run-journal",
      "segment",
    ],
    within: [],
  },
  extract: { doors: ["run-watcher"], within: [] },
  "extract/choose": {
    doors: ["choose-runs", "finished-runs", "first-of-many", "list-finding", "named-runs", "run-lists"],
    within: [],
  },
  "extract/fetch": {
    doors: ["disk-need"],
    within: [
      "bucket-converter",
      "buffer-pool",
      "fetch-buckets",
      "fetch-slice",
      "segment-builder",
      "slice",
      "slice-queue",
      "split-segment",
    ],
  },
  "extract/plan": {
    doors: ["plan-run", "plan-runs"],
    within: [
      "ask-plan",
      "changed-windows",
      "committed-table",
      "compare-held",
      "full-scan",
      "held-window",
      "line-bag",
      "plan",
      "round-number",
      "route",
      "slices",
      "table-asks",
      "wanted-tables",
    ],
  },
  "extract/proof": {
    doors: [],
    within: [
      "absent-table",
      "filled-table",
      "grounds",
      "hashed",
      "other-facts",
      "outer-ends",
      "proven-standing",
      "required-proof",
      "rungs",
      "seen-source",
      "steady-facts",
      "zero-rows",
    ],
  },
  "extract/rebuild": {
    doors: ["rebuild-by-profile", "rebuild-run", "rebuild-runs", "widened-types"],
    within: ["widen"],
  },
  "extract/run": {
    doors: [
      "archive-run",
      "archive-runs",
      "budget",
      "exit-of-run",
      "held-standing",
      "run-description",
      "run-horizon",
      "verify-against",
    ],
    within: ["recognise-source", "standing-acceptances"],
  },
  "extract/together": {
    doors: [],
    within: ["gathering", "in-flight", "shared-use", "side-by-side"],
  },
  faults: { doors: ["armed-faults", "fault", "wire-faults"], within: [] },
  gateway: {
    doors: ["address", "gateway", "open-gateway", "options", "transport-choice"],
    within: [
      "contract",
      "described-route",
      "document-source",
      "documents",
      "given-instances",
      "keep-once",
      "notices",
      "optional-answer",
      "optional-facts",
      "profile-document-source",
      "request-checks",
      "request-scope",
    ],
  },
  "gateway/adapter": { doors: ["check-source", "guarded-source", "open-adapter"], within: [] },
  "gateway/profile": {
    doors: ["load-profile", "profile", "profile-json-schema", "profile-secrets", "profile-text"],
    within: [
      "default-rest",
      "document-fields",
      "document-schema",
      "error-schema",
      "field-path-schema",
      "request-schema",
    ],
  },
  "gateway/profile/check": {
    doors: ["check-profile", "profile-check"],
    within: [
      "asker",
      "column-look",
      "json-node",
      "rest-asker",
      "row-page",
      "rpc-asker",
      "rpc-requests",
      "sample",
      "times",
    ],
  },
  "gateway/profile/draft": { doors: ["draft-profile", "draft-rpc", "openapi-paths"], within: [] },
  "gateway/profile/rpc": {
    doors: [],
    within: ["compile-rpc", "descriptor-set", "message-path", "request-message", "rpc-schema"],
  },
  "gateway/profile/rows": {
    doors: ["foreign-row", "row-normaliser", "remap-lines"],
    within: ["careful-row", "foreign-json", "likely-times", "row-plan"],
  },
  "gateway/http": {
    doors: [],
    within: ["answer", "decode", "error-answer", "error-reach", "http-session", "retry-after", "row-rate"],
  },
  "gateway/rest": {
    doors: [],
    within: [
      "field-values",
      "filter-probe",
      "list-document",
      "profile-documents",
      "profile-rest-source",
      "require-filtered",
      "rest-call",
      "rest-gateway",
      "written-bounds",
    ],
  },
  "gateway/rest/pages": {
    doors: [],
    within: [
      "clip-rows",
      "document-scanner",
      "next-page",
      "page-joins",
      "page-rows",
      "page-walk",
      "row-spool",
      "take-rows",
    ],
  },
  "gateway/rpc": {
    doors: [],
    within: [
      "profile-rpc-client",
      "profile-rpc-source",
      "rpc-client",
      "rpc-documents",
      "rpc-gateway",
      "unknown-fields",
    ],
  },
  "pipeline/connect": { doors: ["connect-job"], within: [] },
  "pipeline/draft": { doors: ["draft-text", "look-at-gateway", "yaml-text"], within: [] },
  "pipeline/file": {
    doors: ["cron", "job-files", "job-json-schema", "job-schema"],
    within: ["job-values", "zone-clock"],
  },
  "pipeline/execute": {
    doors: ["execute-job", "job-means", "plan-job"],
    within: ["choose-now", "job-gateway", "job-runs"],
  },
  "pipeline/record": {
    doors: [
      "in-job-words",
      "job-history",
      "job-lock",
      "job-record",
      "open-record",
      "read-records",
      "recorded-error",
      "staleness",
      "thin-records",
    ],
    within: [],
  },
  "pipeline/tell": {
    doors: [
      "changes",
      "message",
      "metrics",
      "open-tellers",
      "tell-end",
      "tell-start",
      "tell-test",
      "tell-unbegun",
      "troubles",
    ],
    within: [],
  },
  "pipeline/schedule": {
    doors: ["launch-run", "measured-job", "schedule-server", "scheduler", "tell-of-file"],
    within: [],
  },
  "pipeline/units": {
    doors: ["kubernetes-cronjob", "print-units", "unit-kind", "unit-plan"],
    within: [],
  },
  report: { doors: ["report-files", "report-runs"], within: [] },
  "report/charts": {
    doors: [],
    within: [
      "candles-chart",
      "chart",
      "chart-data",
      "equity-chart",
      "events-chart",
      "excursions-chart",
      "exposure-chart",
      "fees-chart",
      "funnel-chart",
      "information-chart",
      "latency-chart",
      "profit-chart",
      "quantiles-chart",
      "returns-chart",
      "rolling-chart",
      "slippage-chart",
    ],
  },
  "report/charts/drawing": {
    doors: [],
    // what is drawn is the charts' business; their words for numbers and times serve the page as well
    within: [
      "bar-rows",
      "factor-panels",
      "run-look",
      "candles",
      "column-bars",
      "draw-chart",
      "encodings",
      "frame",
      "histogram",
      "hover-bands",
      "inner-extent",
      "layer",
      "legend",
      "line-panels",
      "lines",
      "number-text",
      "readings",
      "reduce-line",
      "scatter-cells",
      "text-width",
      "time-axis",
      "value-axis",
    ],
  },
  "report/page": {
    doors: [],
    within: [
      "compared-table",
      "data-table",
      "drawings",
      "figure-cell",
      "figures-table",
      "html",
      "page",
      "time-text",
    ],
  },
  "report/read": {
    doors: [],
    within: [
      "previous-run",
      "read-candles",
      "read-curves",
      "read-events",
      "read-run",
      "read-trades",
      "reconciled",
    ],
  },
  "report/sections": { doors: [], within: ["headline", "page-sections", "reported", "run-card"] },
  serve: { doors: ["server", "transport", "wire-hook"], within: ["envelope", "openapi", "route-doc"] },
  "serve/auth": {
    doors: ["host-names", "token-list"],
    within: ["allowed-instances", "callers", "cross-origin", "request-scope"],
  },
  "serve/control": {
    doors: [],
    within: ["control-routes", "control-services", "lifecycle-routes", "log-routes"],
  },
  "serve/files": { doors: [], within: ["byte-range", "files-routes"] },
  "serve/history": {
    doors: ["page-token"],
    within: [
      "accepted-rows",
      "cursor-pool",
      "delegating-source",
      "history-documents",
      "history-routes",
      "history-service",
      "limited-source",
      "row-cursor",
      "row-query",
      "row-selection",
      "send-rows",
    ],
  },
  "serve/http": {
    doors: ["loopback", "tls-options"],
    within: [
      "body-sink",
      "broken-request",
      "cannot-listen",
      "client-deadline",
      "connections",
      "drain",
      "http-server",
      "idle-reader",
      "json-answer",
      "path-part",
      "request-target",
      "unread-request",
    ],
  },
  "serve/live": { doors: [], within: ["live-route", "recent-rows"] },
  "serve/monitoring": {
    doors: ["access-log", "at-most-every"],
    within: [
      "monitoring-routes",
      "query-clock",
      "query-slots",
      "request-log",
      "service-metrics",
      "service-routes",
    ],
  },
  "serve/rpc": { doors: [], within: ["rpc-call", "rpc-routes"] },
  simulator: { doors: ["simulator"], within: ["seen-run", "simulator-options"] },
  "simulator/bars": {
    doors: [],
    within: ["bars", "csv-bars", "generated-bars", "moved-bars", "sibling-bars"],
  },
  "simulator/books": {
    doors: ["book-fault"],
    within: ["book-break", "ledger", "position", "statistics"],
  },
  "simulator/control": {
    doors: ["instance-fault"],
    within: ["catalog", "instance-life", "simulated-control"],
  },
  "simulator/store": {
    doors: [],
    within: ["line-time", "moved-reader", "render-run", "table-index", "table-reader", "table-writer"],
  },
  "simulator/world": {
    doors: [],
    within: [
      "begun-run",
      "play-run",
      "random",
      "run-numbers",
      "run-plan",
      "run-rows",
      "run-summary",
      "world",
    ],
  },
};

/** Rooms of words, in which every file is a door; and the rooms that nobody imports, where folders are open to each other. */
const openRooms = ["model", "gen", "row", "duckdb", "cli", "library"];

const rooms = ranks.flat();
const rank = (room) => ranks.findIndex((row) => row.includes(room));

/** A pattern of these files of a folder; one of nothing where there is none. */
const files = (folder, names) => (names.length === 0 ? "^$" : `^src/${folder}/(?:${names.join("|")})\\.ts$`);

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    { name: "no-cycles", severity: "error", from: {}, to: { circular: true } },
    {
      name: "known-rooms-only",
      severity: "error",
      from: { path: "^src/", pathNot: `^src/(${rooms.join("|")})/` },
      to: {},
    },
    {
      name: "faults-are-for-simulate",
      comment: "The server knows nothing of faults; who wants them gives it their hook.",
      severity: "error",
      from: {
        path: "^src/",
        pathNot: "^src/(faults/|cli/(commands/simulate|options/simulated-faults|simulate))",
      },
      to: { path: "^src/faults/" },
    },
    {
      name: "faults-see-the-hook-alone",
      severity: "error",
      from: { path: "^src/faults/" },
      to: { path: "^src/", pathNot: "^src/(faults|model|row|gen)/|^src/serve/wire-hook\\.ts$" },
    },
    {
      name: "every-folder-has-doors",
      severity: "error",
      from: {
        path: "^src/",
        pathNot: `^src/(?:(?:${openRooms.join("|")})/|(?:${Object.keys(folders).join("|")})/[^/]+$)`,
      },
      to: {},
    },
    ...Object.entries(folders).flatMap(([folder, { doors, within }]) => [
      {
        name: `${folder}-by-its-doors`,
        severity: "error",
        from: { path: "^src/", pathNot: `^src/${folder.split("/")[0]}/` },
        to: { path: `^src/${folder}/[^/]+$`, pathNot: files(folder, doors) },
      },
      {
        name: `${folder}-within-its-room`,
        severity: "error",
        from: { path: `^src/${folder.split("/")[0]}/`, pathNot: `^src/${folder}/[^/]+$` },
        to: { path: `^src/${folder}/[^/]+$`, pathNot: files(folder, [...doors, ...within]) },
      },
    ]),
    ...rooms
      .map((room) => ({
        room,
        refused: rooms.filter(
          (other) => other !== room && rank(other) >= rank(room) && !(room === "model" && other === "gen"),
        ),
      }))
      .filter(({ refused }) => refused.length > 0)
      .map(({ room, refused }) => ({
        name: `${room}-looks-back-only`,
        severity: "error",
        from: { path: `^src/${room}/` },
        to: { path: `^src/(${refused.join("|")})/` },
      })),
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    doNotFollow: { path: "node_modules" },
  },
};
