import { type DescMethod, type DescService, fromJson, type JsonValue, toBinary } from "@bufbuild/protobuf";
import { DatasourceService } from "../src/gen/example/gateway/v1/datasource_service_pb.ts";
import { DiscoveryService } from "../src/gen/example/gateway/v1/discovery_service_pb.ts";
import { GatewayService } from "../src/gen/example/gateway/v1/gateway_service_pb.ts";
import { InstanceService } from "../src/gen/example/gateway/v1/instance_service_pb.ts";
import { RuntimeService } from "../src/gen/example/gateway/v1/runtime_service_pb.ts";
import { HistoryService } from "../src/gen/example/history/v1/history_service_pb.ts";
import { tables } from "../src/model/table.ts";
import { type DifferentialRequest, type Phase, request } from "./differential-request.ts";
import { type NamedWorld, nasty } from "./differential-world.ts";

const services: readonly DescService[] = [
  GatewayService,
  InstanceService,
  DiscoveryService,
  DatasourceService,
  RuntimeService,
  HistoryService,
];

/** Every method of every service, by its path from the place on that RPC is served at. */
export const rpcMethods: ReadonlyMap<string, DescMethod> = new Map(
  services.flatMap((service) =>
    service.methods.map((method) => [`/${service.typeName}/${method.name}`, method] as const),
  ),
);

/** The method that a request's path is of, if any. */
export function methodOf(path: string): DescMethod | undefined {
  return rpcMethods.get(path.replace(/^\/api\/v1/, "").split("?", 1)[0]!);
}

const codecs = ["proto", "json"] as const;
type Codec = (typeof codecs)[number];
const places = ["", "/api/v1"] as const;
const connect = { "connect-protocol-version": "1" };

type Input = { readonly [name: string]: JsonValue };

function bodyOf(method: DescMethod, input: Input, codec: Codec): Uint8Array {
  if (codec === "json") return Buffer.from(JSON.stringify(input));
  return toBinary(method.input, fromJson(method.input, input));
}

function call(
  path: string,
  method: DescMethod,
  input: Input,
  codec: Codec,
  phase: Phase,
): DifferentialRequest {
  const headers = { ...connect, "content-type": `application/${codec}` };
  return request("POST", path, { headers, body: bodyOf(method, input, codec), phase });
}

/** What a method is asked, good and bad: the first input in both codecs at both places, then codecs and places in turn. */
function calls(path: string, inputs: readonly Input[], phase: Phase): DifferentialRequest[] {
  const method = rpcMethods.get(path)!;
  const everyWay = codecs.flatMap((codec) => places.map((place) => ({ codec, place })));
  return inputs.flatMap((input, number) =>
    (number === 0 ? everyWay : [everyWay[(number * 3) % everyWay.length]!]).map(({ codec, place }) =>
      call(`${place}${path}`, method, input, codec, phase),
    ),
  );
}

/** What the services of the control and live planes are asked in one phase. */
export function controlCalls({ instances }: NamedWorld, phase: Phase): DifferentialRequest[] {
  const ids = instances.map(({ instanceId }) => ({ instanceId }));
  const [one] = ids as [(typeof ids)[0]];
  const named: Input[] = [...ids, { instanceId: "nobody" }, { instanceId: "../x" }, {}];
  const unknown: Input[] = [{ instanceId: "nobody" }, {}];
  const queries = [
    "resources",
    "accounts",
    "portfolios",
    "events",
    "factors",
    "orders",
    "",
    "accounts/nobody",
    `accounts/${nasty.account}`,
    `portfolios/${nasty.portfolio}`,
    "resources/x",
  ];
  const inputs: Record<string, readonly Input[]> = {
    "GatewayService/GetInfo": [{}],
    "GatewayService/GetHealth": [{}],
    "GatewayService/RunDoctor": [{}],
    "InstanceService/ListInstances": [{}],
    "InstanceService/GetInstance": named,
    "InstanceService/StartInstance": unknown,
    "InstanceService/StopInstance": unknown,
    "InstanceService/RestartInstance": unknown,
    "InstanceService/GetLogs": [
      ...named,
      ...[1, 10_000, 10_001, 4_294_967_295].map((tail) => ({ ...one, tail })),
    ],
    "DiscoveryService/ListTargets": [{}],
    "DatasourceService/ListDatasources": [{}],
    "RuntimeService/GetStatus": named,
    "RuntimeService/ListResources": named,
    "RuntimeService/Query": [
      ...queries.map((path) => ({ ...one, path })),
      { path: "accounts" },
      { instanceId: "nobody", path: "accounts" },
    ],
  };
  return Object.entries(inputs).flatMap(([name, each]) => calls(`/example.gateway.v1.${name}`, each, phase));
}

/** What HistoryService is asked. */
export function historyCalls(world: NamedWorld): DifferentialRequest[] {
  const [first, second] = world.instances as [NamedWorld["instances"][0], NamedWorld["instances"][0]];
  const run = { instanceId: first.instanceId, runId: first.runIds[0]! };
  const { early, middle, late } = world.times;
  const runs: Input[] = [
    run,
    { ...run, runId: first.runIds[1]! },
    { instanceId: second.instanceId, runId: second.runIds[2]! },
    { instanceId: first.instanceId },
    { instanceId: first.instanceId, runId: "current" },
    { instanceId: first.instanceId, runId: "nothing" },
    { instanceId: "nobody", runId: first.runIds[0]! },
    { instanceId: "nobody" },
    { runId: first.runIds[0]! },
    {},
  ];
  const bounds: Input[] = [
    { from: String(early) },
    { to: String(middle) },
    { from: String(early), to: String(late) },
    { from: String(late), to: String(early) },
    { from: "0", to: "0" },
    { from: "-1" },
    { from: "9223372036854775807" },
  ];
  const filters: Input[] = [
    { resourceKey: world.resourceKeys[0]! },
    { symbol: nasty.symbol },
    { venue: `${nasty.venue}-DARK` },
    { account: nasty.account },
    { portfolio: nasty.portfolio },
    { symbol: "nothing" },
    { symbol: "a\0b" },
  ];
  const selections: Input[] = [
    ...runs.map((selection) => ({ selection })),
    ...[...bounds, ...filters].map((more) => ({ selection: { ...run, ...more } })),
    {},
  ];
  // the good ones, and every third of the others
  const share = (index: number) => selections.filter((_, number) => number < 3 || number % 3 === index);
  const pages: Input[] = [
    ...[11, 7, 100_000, 4_294_967_295].map((pageSize) => ({ selection: run, pageSize })),
    ...["nonsense", "AAAA", "ü", "x".repeat(9000)].map((pageToken) => ({ selection: run, pageToken })),
  ];
  const previews = tables.flatMap(({ name }, index): Input[] => [
    { table: name, selection: run, pageSize: 11 },
    { table: name, selection: { instanceId: second.instanceId } },
    ...[bounds[2], filters[index % filters.length]].map((more) => ({
      table: name,
      selection: { ...run, ...more },
    })),
  ]);
  const inputs: Record<string, readonly Input[]> = {
    GetDatasource: [{}],
    ListInstances: [{}],
    ListRuns: [
      { instanceId: first.instanceId },
      { instanceId: second.instanceId },
      { instanceId: "nobody" },
      {},
    ],
    ListResources: runs,
    GetSummary: runs,
    GetStorageFacts: [...runs, ...bounds.map((more) => ({ ...run, ...more }))],
    ListRecentFills: [...share(0), ...[1, 10_000, 10_001].map((limit) => ({ selection: run, limit }))],
    ListPortfolioSeries: [...share(1), ...pages],
    ListPortfolioMetrics: [...share(2), ...pages],
    ListMarketBars: [...share(0), ...pages],
    PreviewTable: [
      ...previews,
      ...share(1).map((each) => ({ table: "fills", ...each })),
      ...pages.map((each) => ({ table: "orders", ...each })),
      { table: "positions", selection: run },
      { selection: run },
    ],
  };
  return Object.entries(inputs).flatMap(([name, each]) =>
    calls(`/example.history.v1.HistoryService/${name}`, each, "ended"),
  );
}

/** Calls that are none, of every method: wrong methods, types, versions, codings, bodies, and fields nobody knows. */
export function malformedCalls(): DifferentialRequest[] {
  const proto = { ...connect, "content-type": "application/proto" };
  const json = { ...connect, "content-type": "application/json" };
  // a field with the number 999, of type string
  const unknownField = Buffer.from([0xba, 0x3e, 0x01, 0x78]);
  const endless = Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f]);
  const post = (path: string, headers: Record<string, string>, body: string | Uint8Array) =>
    request("POST", path, { headers, body: Buffer.from(body) });
  const kinds: readonly ((at: string) => DifferentialRequest)[] = [
    (at) => request("GET", at),
    (at) => request("GET", `${at}?connect=v1&encoding=json&message=%7B%7D`),
    (at) => request("PUT", at, { headers: json, body: Buffer.from("{}") }),
    (at) => request("OPTIONS", at),
    (at) => request("HEAD", at),
    (at) => request("POST", at),
    (at) => post(at, {}, "{}"),
    (at) => post(at, { ...connect, "content-type": "text/plain" }, "{}"),
    (at) => post(at, { ...connect, "content-type": "application/x-www-form-urlencoded" }, "a=b"),
    (at) => post(at, { ...connect, "content-type": "application/connect+json" }, "{}"),
    (at) => post(at, { ...json, "connect-protocol-version": "2" }, "{}"),
    (at) => post(at, { ...json, "connect-timeout-ms": "soon" }, "{}"),
    (at) => post(at, { ...json, "content-encoding": "br" }, "{}"),
    (at) => post(at, { ...json, "content-encoding": "gzip" }, "{}"),
    (at) => post(at, json, "{"),
    (at) => post(at, json, "[]"),
    (at) => post(at, json, '{"instanceId":7,"selection":"x"}'),
    (at) => post(at, json, `{"instanceId":"${"x".repeat(70_000)}"}`),
    (at) => post(at, proto, endless),
  ];
  return [...rpcMethods.keys()].flatMap((path, index) => {
    const at = `${places[index % places.length]}${path}`;
    return [
      // of every method
      request("GET", at),
      post(at, { ...connect, "content-type": "text/plain" }, "{}"),
      post(at, json, '{"nothing":1}'),
      post(at, proto, unknownField),
      // and its share of the others
      ...kinds.filter((_, number) => number % 4 === index % 4).map((kind) => kind(at)),
    ];
  });
}

/** The next page of a listing whose page had a token; undefined where it had none. */
export function nextPage(
  asked: DifferentialRequest,
  fields: ReadonlyMap<string, string>,
): DifferentialRequest | undefined {
  const method = methodOf(asked.path);
  const given = fields.get("nextPageToken");
  const { body, headers } = asked;
  if (method === undefined || given === undefined || given === '""' || body === undefined) return undefined;
  if (headers["content-type"] !== "application/json") return undefined;
  const input = JSON.parse(Buffer.from(body).toString("utf8")) as Input;
  const pageToken = JSON.parse(given) as string;
  return call(asked.path, method, { ...input, pageToken }, "json", asked.phase);
}

/** Actions over RPC that a gateway takes, asked after those over REST. */
export function lifecycleCalls({ instances }: NamedWorld): DifferentialRequest[] {
  const [one, two] = instances.map(({ instanceId }): Input => ({ instanceId })) as [Input, Input];
  const actions = [
    ["StartInstance", two, "ended"],
    ["StartInstance", two, "later"],
    ["StopInstance", one, "later"],
    ["RestartInstance", two, "later"],
  ] as const;
  return actions.map(([name, input, phase], index) => {
    const path = `/example.gateway.v1.InstanceService/${name}`;
    const codec = codecs[index % codecs.length]!;
    return call(`${places[index % places.length]}${path}`, rpcMethods.get(path)!, input, codec, phase);
  });
}
