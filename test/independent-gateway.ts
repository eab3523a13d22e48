// A gateway of its own: written from the interface document and the contract's prose, sharing no code with src/, so
// that a misreading there is not repeated here. REST only; two finished runs of one instance, eight tables.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { instance, makeBars, makeRun, readBars, type StoredRow, tables } from "./independent-rows.ts";

export interface IndependentGatewayOptions {
  /** Also offers /history/runs, /history/resources and /history/storage. */
  readonly facts: boolean;
  /** Most rows of one answer, whatever limit asks for, without a word. At most six rows share a timestamp. */
  readonly cap?: number;
  /** A file timestamp,open,high,low,close[,volume], `.csv` or `.csv.gz`, timestamps at the close; else 600 made bars. */
  readonly bars?: string;
}

export interface IndependentGateway {
  /** The base address, ending in /api/v1. */
  readonly url: string;
  /** Path and query of every request so far. */
  readonly requests: readonly string[];
  /** Ids of the instances. */
  readonly instances: readonly string[];
  /** Ids of an instance's runs, oldest first; empty for an instance that does not exist. */
  runs(instance: string): readonly string[];
  /** Every row of a table as it goes over the wire, without line ends, in key order. */
  lines(instance: string, run: string, table: string): string[];
  close(): Promise<void>;
}

/** An answer that is an error: HTTP status and code of the history family. */
class Refusal extends Error {
  readonly status: number;
  readonly code: string;
  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

function nanoseconds(text: string): bigint {
  if (/^-?\d+$/.test(text)) return BigInt(text);
  const [, whole, fraction = "", zone] =
    /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/.exec(text) ?? [];
  const milliseconds = Date.parse(`${whole}${zone}`);
  if (Number.isNaN(milliseconds)) throw new Refusal(400, "invalid_argument", `not a time: ${text}`);
  return BigInt(milliseconds) * 1_000_000n + BigInt(fraction.padEnd(9, "0"));
}

/** Starts it on a free port of 127.0.0.1. */
export async function startIndependentGateway(
  options: IndependentGatewayOptions,
): Promise<IndependentGateway> {
  const bars = options.bars === undefined ? makeBars(600) : await readBars(options.bars);
  const runs = new Map([
    ["2022/a:1", makeRun("2022/a:1", bars)],
    ["run-2", makeRun("run-2", bars.slice(-400))],
  ]);
  const runIds = [...runs.keys()];
  const states = { desiredState: "STOPPED", processState: "STOPPED", runtimeState: "STOPPED" };
  const entry = { instanceId: instance, ...states, instanceState: "STOPPED", currentRunId: runIds.at(-1) };
  const bounds = (run: string) => {
    const events = runs.get(run)!.get("events")!;
    return { ts_started: `${events[0]!.time}`, ts_ended: `${events.at(-1)!.time}` };
  };

  /** The run of a history request, its other parameters checked; an empty run_id is the latest. */
  function selectRun(query: URLSearchParams, allowed: readonly string[]): string {
    for (const name of query.keys()) {
      if (!["instance", "run_id", ...allowed].includes(name) || query.getAll(name).length > 1)
        throw new Refusal(400, "invalid_argument", `parameter ${name} does not apply`);
    }
    if (!query.has("instance")) throw new Refusal(400, "invalid_argument", "parameter instance is required");
    if (query.get("instance") !== instance) throw new Refusal(404, "instance_not_found", "no such instance");
    const run = query.get("run_id") || runIds.at(-1)!;
    if (!runs.has(run)) throw new Refusal(404, "run_not_found", "no such run");
    return run;
  }

  function select(query: URLSearchParams, run: string, table: string): StoredRow[] {
    const [from, to] = ["from", "to"].map((name) =>
      query.has(name) ? nanoseconds(query.get(name)!) : undefined,
    );
    const filters = tables[table]!.filters.filter((name) => query.get(name));
    return runs
      .get(run)!
      .get(table)!
      .filter(
        ({ time, fields }) =>
          (from === undefined || time >= from) &&
          (to === undefined || time < to) &&
          filters.every((name) => fields[name] === query.get(name)),
      );
  }

  function historyDocument(path: string, query: URLSearchParams): object {
    if (path === "instances")
      return { instances: [{ instance_id: instance, run_ids: runIds, latest_run_id: runIds.at(-1) }] };
    if (path === "summary") {
      const run = selectRun(query, []);
      const equity = runs.get(run)!.get("equity")!;
      const ids = { run_id: run, instance_id: instance, status: "FINISHED", ...bounds(run) };
      const names = { strategy: "momentum", account: "main", portfolio: "book", currency: "USD" };
      const amounts = { initial_equity: "1000000", final_equity: equity.at(-1)?.fields.equity, fees: "" };
      return { ...ids, ...names, ...amounts, orders: `${equity.length}`, fills: `${equity.length * 2}` };
    }
    if (options.facts && path === "runs") {
      if (query.has("run_id")) throw new Refusal(400, "invalid_argument", "parameter run_id does not apply");
      selectRun(query, []);
      const run = (id: string) => ({ run_id: id, instance_id: instance, status: "FINISHED", ...bounds(id) });
      return { runs: runIds.map((id) => ({ ...run(id), final: true, storage_version: "1" })) };
    }
    if (options.facts && path === "resources") {
      const run = selectRun(query, []);
      const resources = Object.keys(tables).flatMap((table) => {
        const last = runs.get(run)!.get(table)!.at(-1);
        if (last === undefined) return [];
        const { resource_key, symbol, venue, account, portfolio } = last.fields;
        return [{ resource_key, table, symbol, venue, account, portfolio }];
      });
      return { resources: resources.sort((a, b) => (`${a.resource_key}` < `${b.resource_key}` ? -1 : 1)) };
    }
    if (options.facts && path === "storage") {
      const run = selectRun(query, ["from", "to"]);
      const facts = Object.keys(tables).map((table) => {
        const rows = select(query, run, table);
        const [min_ts_event, max_ts_event] = [rows[0], rows.at(-1)].map((row) => `${row?.time ?? 0}`);
        return {
          ...{ table, rows: `${rows.length}`, min_ts_event, max_ts_event },
          ...{ schema_fingerprint: `${table}-1`, final: true },
        };
      });
      return { tables: facts };
    }
    throw new Refusal(404, "route_not_found", `no route ${path}`);
  }

  async function sendRows(response: ServerResponse, table: string, query: URLSearchParams): Promise<void> {
    const run = selectRun(query, ["from", "to", "limit", ...tables[table]!.filters]);
    const limit = query.get("limit") ?? "1000000000";
    if (!/^[1-9]\d{0,9}$/.test(limit)) throw new Refusal(400, "invalid_argument", `not a limit: ${limit}`);
    const rows = select(query, run, table).slice(0, Math.min(Number(limit), options.cap ?? Number(limit)));
    response.writeHead(200, { "content-type": "application/x-ndjson" });
    const bytes = Buffer.from(rows.map(({ line }) => `${line}\n`).join(""));
    const pieces = Array.from({ length: Math.ceil(bytes.length / 50_000) }, (_, index) =>
      bytes.subarray(index * 50_000, (index + 1) * 50_000),
    );
    await pipeline(Readable.from(pieces), response);
  }

  const requests: string[] = [];
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const send = (status: number, body: object) =>
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    const url = new URL(request.url ?? "/", "http://gateway");
    requests.push(url.pathname + url.search);
    const path = url.pathname.startsWith("/api/v1/") ? url.pathname.slice("/api/v1/".length) : "";
    try {
      if (request.method === "GET" && path.startsWith("history/")) {
        const below = path.slice("history/".length);
        const table = Object.keys(tables).find((name) => tables[name]!.path === below);
        if (table === undefined) send(200, historyDocument(below, url.searchParams));
        else await sendRows(response, table, url.searchParams);
      } else if (request.method === "GET" && path === "health") send(200, { status: "SERVING" });
      else if (request.method === "GET" && path === "doctor") send(200, { ok: true });
      else if (request.method === "GET" && path === "instances")
        send(200, { daemon: { reachable: true }, instances: [entry] });
      else if (request.method === "GET" && path === `instances/${instance}`) send(200, entry);
      else {
        const code = path.startsWith("instances/") ? "INSTANCE_NOT_FOUND" : "ROUTE_NOT_FOUND";
        const rest = { message: `no route ${path}`, capability: "", upstreamCode: "", hint: "" };
        send(404, { error: { code: `ERROR_CODE_${code}`, ...rest } });
      }
    } catch (error) {
      if (response.headersSent) response.destroy();
      else if (error instanceof Refusal)
        send(error.status, { ok: false, error: { code: error.code, message: error.message } });
      else send(502, { ok: false, error: { code: "history_query_failed", message: String(error) } });
    }
  }

  const server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/v1`,
    requests,
    instances: [instance],
    runs: (id) => (id === instance ? runIds : []),
    lines(id, run, table) {
      const rows = id === instance ? runs.get(run)?.get(table) : undefined;
      if (rows === undefined) throw new Error(`there is no ${table} of ${id}/${run}`);
      return rows.map(({ line }) => line);
    },
    close: () =>
      new Promise((resolve, reject) => {
        server.close((error) => (error === undefined ? resolve() : reject(error)));
        server.closeAllConnections();
      }),
  };
}
