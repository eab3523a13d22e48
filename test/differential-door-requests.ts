import { tables } from "../src/model/table.ts";
import { type DifferentialRequest, get, request } from "./differential-request.ts";
import { rpcMethods } from "./differential-rpc-requests.ts";
import { tokens } from "./differential-sides.ts";
import type { NamedWorld } from "./differential-world.ts";

/** Requests to servers that want tokens, that pages of other origins read, and that are about to stop. */
export function doorRequests(world: NamedWorld): DifferentialRequest[] {
  return [...tokenRequests(world), ...originRequests(world), ...stoppingRequests(world)];
}

function restPaths({ instances }: NamedWorld, instance: 0 | 1): string[] {
  const { instanceId } = instances[instance]!;
  const query = `?instance=${instanceId}`;
  return [
    "/health",
    "/doctor",
    "/instances",
    "/discovery",
    "/nothing",
    `/instances/${instanceId}`,
    `/instances/${instanceId}/health`,
    `/runtime/status${query}`,
    `/runtime/resources${query}`,
    `/runtime/query/resources${query}`,
    "/history/instances",
    ...["runs", "summary", "resources", "storage"].map((name) => `/history/${name}${query}`),
    ...tables.map(({ path }) => `${path}${query}&limit=2`),
  ];
}

function tokenRequests(world: NamedWorld): DifferentialRequest[] {
  const credentials = [
    undefined,
    "",
    "Bearer",
    "Bearer wrong-token-of-nobody",
    `Basic ${Buffer.from(`all:${tokens.all}`).toString("base64")}`,
    `Bearer ${tokens.all}`,
    `bearer ${tokens.all}`,
    `Bearer ${tokens.first}`,
  ];
  return credentials.flatMap((authorization, index) => {
    const headers = authorization === undefined ? {} : { authorization };
    const guarded = { door: "guarded", headers } as const;
    // no token, and one that may ask for the other instance alone, on every route; of the rest each its share
    const everywhere = authorization === undefined || authorization.endsWith(tokens.first);
    const share = (_: string, number: number) => everywhere || number % credentials.length === index;
    const asked = [...restPaths(world, 1), ...(everywhere ? restPaths(world, 0) : [])];
    return [
      ...asked.filter(share).map((path) => get(path, guarded)),
      request("GET", "/metrics/instances/1", guarded),
      request("POST", "/api/v1/instances/nobody/start", guarded),
      ...[...rpcMethods.keys()].filter(share).map((path) =>
        request("POST", path, {
          door: "guarded",
          headers: { ...headers, "connect-protocol-version": "1", "content-type": "application/json" },
          body: Buffer.from("{}"),
        }),
      ),
    ];
  });
}

function originRequests(world: NamedWorld): DifferentialRequest[] {
  const authorization = `Bearer ${tokens.all}`;
  return ["https://desk.example", "https://evil.example", "null"].flatMap((origin, index) =>
    restPaths(world, 0)
      .filter((_, number) => number % 3 === index)
      .flatMap((path) => [
        get(path, { door: "guarded", headers: { origin, authorization } }),
        get(path, { door: "guarded", headers: { origin } }),
        request("OPTIONS", `/api/v1${path}`, {
          door: "guarded",
          headers: { origin, "access-control-request-method": "GET" },
        }),
      ]),
  );
}

function stoppingRequests(world: NamedWorld): DifferentialRequest[] {
  const door = "stopping";
  const headers = { "connect-protocol-version": "1", "content-type": "application/json" };
  return [
    ...restPaths(world, 0).map((path) => get(path, { door })),
    ...[...rpcMethods.keys()].map((path) =>
      request("POST", path, { door, headers, body: Buffer.from("{}") }),
    ),
  ];
}
