import { type FilterName, filterNames, tables } from "../src/model/table.ts";
import { type DifferentialRequest, get, queryOf, request } from "./differential-request.ts";
import { type NamedWorld, nasty } from "./differential-world.ts";

type Parameters = readonly (readonly [name: string, value: string])[];

/** Ids that nobody has, some of them meant to get somewhere else. */
const strangeIds = [
  "nobody",
  "ALPHA-1",
  "..",
  "../../etc/passwd",
  "%2e%2e%2f",
  "alpha-1/",
  "' OR 1=1 --",
  "a\0b",
  "ü",
  "x".repeat(300),
] as const;

/** Every request for history over REST. */
export function historyRequests(world: NamedWorld): DifferentialRequest[] {
  return [...rowRequests(world), ...negotiatedRequests(world), ...documentRequests(world)];
}

/** Every table with what is good of it, and with its share of what is wrong: one parser reads them all. */
function rowRequests(world: NamedWorld): DifferentialRequest[] {
  const [one, other] = world.instances as [NamedWorld["instances"][0], NamedWorld["instances"][0]];
  const instance = ["instance", one.instanceId] as const;
  const oneRun: Parameters = [instance, ["run_id", one.runIds[0]!]];
  const good: Parameters[] = [
    ...world.instances.flatMap(({ instanceId, runIds }) =>
      runIds.map(
        (runId): Parameters => [
          ["instance", instanceId],
          ["run_id", runId],
        ],
      ),
    ),
    [["instance", other.instanceId]],
    ...windows(world).map((bounds) => [...oneRun, ...bounds]),
    ...["1", "7", "1000000000"].map((limit): Parameters => [...oneRun, ["limit", limit]]),
  ];
  const wrong: Parameters[] = [
    ...["", "current", "nothing", `${one.runIds[0]} `, "../x", "'; DROP TABLE fills; --", "a\0b"].map(
      (runId): Parameters => [instance, ["run_id", runId]],
    ),
    ...["", "current", ...strangeIds].map((id): Parameters => [["instance", id]]),
    [],
    oneRun.slice(1),
    [instance, instance],
    [...oneRun, oneRun[1]!],
    ...["limits", "Limit", "follow", "instanceId", "fills.symbol"].map(
      (name): Parameters => [...oneRun, [name, "1"]],
    ),
    ...[...oddBounds(world), ...oddLimits].map((more) => [...oneRun, ...more]),
  ];
  return tables.flatMap(({ path, filters }, index) => {
    // a filter that it has, and its share of the rest: each costs the archive a query
    const own = filterParameters(world).filter(
      (parameters, number) =>
        number % 6 === index % 6 ||
        (number < filterNames.length && parameters[0]![0] === filters[index % filters.length]),
    );
    const asked = [
      ...good,
      ["instance", "run_id"].map((name, at): Parameters[number] => [name, ["nobody", "nothing"][at]!]),
      ...wrong.filter((_, number) => number % tables.length === index),
      ...own.map((filter) => [...oneRun, ...filter]),
    ];
    return asked.map((parameters) => get(`${path}?${queryOf(parameters)}`));
  });
}

function windows({ times }: NamedWorld): Parameters[] {
  const { early, middle, late } = times;
  const both = (from: string, to: string): Parameters => [
    ["from", from],
    ["to", to],
  ];
  return [
    [["from", String(early)]],
    [["to", String(early)]],
    both(String(early), String(late)),
    both(isoOf(middle), isoOf(late)),
    both(String(middle), String(middle)),
    both(String(late), String(early)),
  ];
}

function isoOf(at: bigint): string {
  return new Date(Number(at / 1_000_000n)).toISOString();
}

function oddBounds({ times }: NamedWorld): Parameters[] {
  const { early, middle, late } = times;
  return [
    ...[
      ...["", " ", "yesterday", "1.5", "1e18", "0x10", "9223372036854775808", "2022-02-30"],
      ...["2022-01-01T25:00:00Z", "2022-01-01", isoOf(middle).replace("Z", "+02:00")],
    ].map((text): Parameters => [["from", text]]),
    [["to", "tomorrow"]],
    [
      ["from", "-5"],
      ["to", "9223372036854775807"],
    ],
    [
      ["from", "0"],
      ["to", "0"],
    ],
    [
      ["from", isoOf(late)],
      ["to", String(early)],
    ],
    [
      ["from", "1"],
      ["from", "2"],
    ],
  ];
}

const oddLimits = [
  ...["007", "9007199254740991", "9007199254740992", "18446744073709551616"],
  ...["0", "-1", "1.5", "1e3", "abc", "", " 1"],
].map((text): Parameters => [["limit", text]]);

/** Each filter with what it finds and with nothing; odd values, of one filter each; and several at once. */
function filterParameters({ resourceKeys, times }: NamedWorld): Parameters[] {
  const found: Record<FilterName, string> = {
    resource_key: resourceKeys.find((key) => key.startsWith("fills."))!,
    symbol: nasty.symbol,
    venue: `${nasty.venue}-DARK`,
    account: nasty.account,
    portfolio: nasty.portfolio,
  };
  const odd = ["", "%", "' OR ''='", "a\0b", nasty.symbol.toLowerCase()];
  return [
    ...filterNames.map((name): Parameters => [[name, found[name]]]),
    ...filterNames.map((name, index): Parameters => [[name, odd[index]!]]),
    [
      ["symbol", nasty.symbol],
      ["venue", nasty.venue],
      ["from", String(times.early)],
      ["to", String(times.late)],
      ["limit", "5"],
    ],
    [
      ["portfolio", nasty.portfolio],
      ["account", nasty.account],
      ["limit", "3"],
    ],
    [
      ["resource_key", "nothing"],
      ["resource_key", "nothing"],
    ],
  ];
}

/** What a client may say of the form it wants rows in. */
function negotiatedRequests({ instances }: NamedWorld): DifferentialRequest[] {
  const { instanceId, runIds } = instances[0]!;
  const query = queryOf([
    ["instance", instanceId],
    ["run_id", runIds[0]!],
  ]);
  const accepts = [
    ...["*/*", "application/x-ndjson", "application/json", "text/html, */*;q=0.1", "nonsense"],
    ...["text/csv", "text/csv;q=0, application/x-ndjson", "application/vnd.apache.arrow.stream"],
  ];
  const encodings = [
    "gzip",
    "zstd",
    "identity",
    "br",
    "*",
    "gzip;q=0",
    "zstd;q=0.1, gzip",
    "ZSTD",
    "nonsense",
  ];
  const headers = [
    ...accepts.map((accept) => ({ accept })),
    ...encodings.map((coding) => ({ "accept-encoding": coding })),
    { "accept-encoding": "zstd", accept: "application/x-ndjson" },
    { "if-none-match": "*" },
    { range: "bytes=0-10" },
  ];
  const everywhere = ["/history/fills", "/history/summary"];
  const coded = headers.filter(
    (some) => "accept-encoding" in some && /^(zstd|gzip)$/.test(some["accept-encoding"]),
  );
  return [
    ...everywhere.flatMap((path) => headers.map((some) => get(`${path}?${query}`, { headers: some }))),
    ...tables.flatMap(({ path }) => coded.map((some) => get(`${path}?${query}`, { headers: some }))),
  ];
}

function documentRequests(world: NamedWorld): DifferentialRequest[] {
  const runs = world.instances.flatMap(({ instanceId, runIds }) => [
    [["instance", instanceId]] satisfies Parameters,
    ...["", "current", "nothing", ...runIds].map(
      (runId): Parameters => [
        ["instance", instanceId],
        ["run_id", runId],
      ],
    ),
  ]);
  const { instanceId, runIds } = world.instances[0]!;
  const wrong: Parameters[] = [
    [],
    [["instance", ""]],
    ...strangeIds.map((id): Parameters => [["instance", id]]),
    ...strangeIds.map(
      (id): Parameters => [
        ["instance", instanceId],
        ["run_id", id],
      ],
    ),
    [
      ["instance", instanceId],
      ["instance", instanceId],
    ],
    [
      ["instance", instanceId],
      ["limit", "1"],
    ],
    [
      ["instance", instanceId],
      ["from", "1"],
      ["to", "0"],
    ],
  ];
  const run: Parameters = [
    ["instance", instanceId],
    ["run_id", runIds[0]!],
  ];
  const ask = (path: string, each: readonly Parameters[]) =>
    each.map((parameters) => get(`/history/${path}?${queryOf(parameters)}`));
  return [
    get("/history/instances"),
    ...ask("instances", [[["instance", instanceId]], [["limit", "1"]]]),
    ...["summary", "resources", "storage"].flatMap((path, index) =>
      ask(path, [...runs, ...wrong.filter((_, number) => number % 3 === index)]),
    ),
    ...ask("runs", [...world.instances.map(({ instanceId: id }): Parameters => [["instance", id]]), run]),
    ...ask("runs", wrong),
    ...ask(
      "storage",
      [...windows(world), ...oddBounds(world)].map((bounds) => [...run, ...bounds]),
    ),
  ];
}

/** What the control, live and monitoring planes are asked in one phase. */
export function controlRequests(
  world: NamedWorld,
  phase: DifferentialRequest["phase"],
): DifferentialRequest[] {
  const strange = phase === "ended" ? strangeIds : strangeIds.slice(0, 1);
  const ids = [...world.instances.map(({ instanceId }) => instanceId), ...strange];
  const known = world.instances.map(({ instanceId }) => instanceId);
  const [one] = known as [string];
  const inPath = (id: string) => encodeURIComponent(id);
  const below = ["", "/health", "/logs", "/logs?tail=5", "/ws"];
  const tails = ["0", "1", "10000", "10001", "-1", "1.5", "ten", "", "9".repeat(40)];
  const plain = ["/health", "/doctor", "/instances"];
  const queries = [
    "resources",
    "accounts",
    "portfolios",
    "events",
    "factors",
    "orders",
    "",
    "resources/x",
    "events/x",
    "accounts/nobody",
    `accounts/${inPath(nasty.account)}`,
    `portfolios/${inPath(nasty.portfolio)}`,
    "accounts/a/b",
    "Accounts",
    "../status",
    "..%2Fstatus",
  ];
  const socket = {
    connection: "Upgrade",
    upgrade: "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
  };
  const paths = [
    ...plain.flatMap((path) => [path, `${path}?x=1`, `${path}?instance=${one}`, `${path}/`]),
    ...ids.flatMap((id) => below.map((rest) => `/instances/${inPath(id)}${rest}`)),
    ...tails.map((tail) => `/instances/${one}/logs?tail=${tail}`),
    ...["tail=1&tail=2", "lines=5", "follow=yes", "follow=", "follow=false", "follow=true&follow=true"].map(
      (query) => `/instances/${one}/logs?${query}`,
    ),
    ...["status", "resources"].flatMap((path) => [
      ...["", "?", "?instance=", `?instance=${one}&instance=${one}`, `?instance=${one}&x=1`].map(
        (query) => `/runtime/${path}${query}`,
      ),
      ...ids.map((id) => `/runtime/${path}?instance=${inPath(id)}`),
    ]),
    ...queries.flatMap((path) =>
      [...known, "nobody"].map((id) => `/runtime/query/${path}?instance=${inPath(id)}`),
    ),
    `/runtime/query/accounts`,
    `/runtime/query/accounts?instance=${one}&account=main`,
    "/runtime/query?instance=alpha-1",
    "/runtime",
  ];
  return [
    ...paths.map((path) => get(path)),
    ...[...known, "nobody"].map((id) => get(`/instances/${id}/logs?follow=true`, { reads: "head" })),
    ...[...known, "nobody"].map((id) => get(`/instances/${id}/ws`, { headers: socket })),
    get("/instances", { headers: socket }),
    get("/nothing", { headers: socket }),
  ].map((asked) => ({ ...asked, phase }));
}

/** The service's own metrics, of a server that answered nothing else, for it counts its answers. */
function ownMetricsRequests(): DifferentialRequest[] {
  return ["/metrics", "/api/v1/metrics"].map((path) => request("GET", path, { door: "fresh" }));
}

/** Discovery and the metrics of instances, at both of their places. */
export function monitoringRequests(): DifferentialRequest[] {
  const ports = ["9100", "9101", "9102", "80", "0", "65536", "09100", "-1", "abc", "1e3", "%2e%2e", ""];
  const paths = [
    "/discovery",
    "/discovery?x=1",
    "/metrics?x=1",
    "/metrics/",
    "/metrics/instances",
    ...ports.map((port) => `/metrics/instances/${port}`),
    "/metrics/instances/9100?x=1",
  ];
  const hosts = ["gateway.example", "gateway.example:8443", "[::1]:80", "bad host", "x:99999"];
  const atPlaces = ["", "/api/v1"].flatMap((place) => [
    ...paths.map((path) => request("GET", `${place}${path}`)),
    ...hosts.map((host) => request("GET", `${place}/discovery`, { headers: { host } })),
  ]);
  return [...ownMetricsRequests(), ...atPlaces];
}

/** Every route with methods and bodies that it does not take, and paths that nobody serves. */
export function misdirectedRequests({ instances }: NamedWorld): DifferentialRequest[] {
  const { instanceId } = instances[0]!;
  const query = `?instance=${instanceId}`;
  const got = [
    "/health",
    "/doctor",
    "/instances",
    `/instances/${instanceId}`,
    `/instances/${instanceId}/health`,
    `/instances/${instanceId}/logs`,
    `/instances/${instanceId}/ws`,
    `/runtime/status${query}`,
    `/runtime/resources${query}`,
    `/runtime/query/resources${query}`,
    "/discovery",
    "/metrics/instances/9100",
    "/metrics",
    "/history/instances",
    ...["runs", "summary", "resources", "storage"].map((name) => `/history/${name}${query}`),
    ...tables.map(({ path }) => `${path}${query}`),
  ];
  const posted = ["start", "stop", "restart"].map((action) => `/instances/${instanceId}/${action}`);
  const json = { "content-type": "application/json" };
  const other = ["PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "PROPFIND"];
  const at = (method: string, path: string, body?: string, headers: Record<string, string> = {}) =>
    request(method, `/api/v1${path}`, {
      headers,
      body: body === undefined ? undefined : Buffer.from(body),
    });
  const unserved = [
    "/",
    "/api",
    "/api/v1",
    "/api/v1/",
    "/api/v2/health",
    "/API/V1/health",
    "/api/v1//health",
    "/api/v1/history",
    "/api/v1/history/",
    "/api/v1/history/positions",
    "/api/v1/history/order_book",
    "/api/v1/history/fills/",
    "/api/v1/history/../health",
    "/api/v1/history/%2e%2e/health",
    "/api/v1/history/..%2f..%2f..%2fetc%2fpasswd",
    "/api/v1/history/portfolio",
    "/api/v1/history/%zz",
    "/api/v1/instances/%",
    "/api/v1/instances/%ff",
    `/api/v1/instances/${"x".repeat(5000)}`,
    "/example.gateway.v1.GatewayService",
    "/example.gateway.v1.GatewayService/",
    "/example.gateway.v1.GatewayService/Nothing",
    "/example.gateway.v1.NothingService/GetHealth",
    "/example.history.v1.HistoryService/getSummary",
    "/.env",
  ];
  return [
    ...got.flatMap((path, index) => [
      ...other.filter((_, number) => number % 2 === index % 2).map((method) => at(method, path)),
      at("POST", path),
      ...(index % 2 === 0 ? [at("POST", path, "{}", json)] : [at("GET", path, "{}", json)]),
    ]),
    ...posted.flatMap((path) => [
      ...["GET", ...other].map((method) => at(method, path)),
      at("POST", path, "{}", json),
      at("POST", path, "{", json),
      at("POST", path, "x".repeat(2000), { "content-type": "text/plain" }),
      at("POST", `${path}?force=1`),
      at("POST", path.replace(instanceId, "nobody")),
      at("POST", path.replace(instanceId, "nobody"), "{}", json),
    ]),
    ...unserved.map((path, index) => request(index % 4 === 3 ? "POST" : "GET", path)),
  ];
}

/** Actions that a gateway takes, asked last of all: what they change shows from then on. */
export function lifecycleRequests({ instances }: NamedWorld): DifferentialRequest[] {
  const [one, two] = instances.map(({ instanceId }) => instanceId) as [string, string];
  const actions = [
    [one, "start"],
    [one, "stop"],
    [one, "restart"],
    [two, "restart"],
    [two, "start"],
    [two, "stop"],
  ];
  const none = { "content-type": "application/json" };
  return [
    ...actions.map(([id, action]) =>
      request("POST", `/api/v1/instances/${id}/${action}`, { phase: "running" }),
    ),
    ...["stop", "start"].map((action) =>
      request("POST", `/api/v1/instances/${one}/${action}`, { phase: "ended", headers: none }),
    ),
  ];
}
