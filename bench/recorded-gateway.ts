// A gateway of one run's fills out of a file of lines, in a process of its own: facts that heed bounds, and rows within
// bounds up to a limit, straight from memory. What it costs is not the client's.
//   node recorded-gateway.ts FILE TIMES UNIT_NS MEDIA_TYPE
//   TIMES: a file of the lines' instants, one a line, in nanoseconds
//   UNIT_NS: how many of them the unit of bounds has
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const [file, timesFile, unitNs] = process.argv.slice(2) as [string, string, string];
const text = await readFile(file);
const times = BigInt64Array.from((await readFile(timesFile, "utf8")).trimEnd().split("\n"), BigInt);
const starts = new Float64Array(times.length + 1);
for (let row = 1; row <= times.length; row++) starts[row] = text.indexOf(10, starts[row - 1]) + 1;

/** The first row at an instant or behind it. */
function rowAt(instant: bigint): number {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle]! < instant) low = middle + 1;
    else high = middle;
  }
  return low;
}

const run = { instance_id: "alpha-1", run_id: "recorded" };
const json = { "content-type": "application/json" };
const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url!, "http://gateway");
  const bound = (name: string, otherwise: number) => {
    const given = searchParams.get(name);
    return given === null ? otherwise : rowAt(BigInt(given) * BigInt(unitNs));
  };
  const asked = searchParams.get("run_id") ?? run.run_id;
  if (asked !== run.run_id) {
    response.writeHead(404, json).end('{"error":{"code":"run_not_found","message":"no such run"}}');
    return;
  }
  const [from, to] = [bound("from", 0), bound("to", times.length)];
  const document = (value: object) => response.writeHead(200, json).end(JSON.stringify(value));
  switch (pathname) {
    case "/history/instances":
      return document({ instances: [{ instance_id: run.instance_id, run_ids: [run.run_id] }] });
    case "/history/runs": {
      const entry = { ts_started: `${times[0]}`, ts_ended: `${times.at(-1)! + 1n}` };
      return document({
        runs: [{ ...run, status: "FINISHED", ...entry, final: true, storage_version: "1" }],
      });
    }
    case "/history/storage": {
      const ends = { min_ts_event: `${times[from] ?? 0}`, max_ts_event: `${times[to - 1] ?? 0}` };
      const rows = String(Math.max(0, to - from));
      return document({ tables: [{ table: "fills", rows, ...ends, schema_fingerprint: "1", final: true }] });
    }
    case "/history/fills": {
      const limit = Number(searchParams.get("limit") ?? Number.POSITIVE_INFINITY);
      const end = Math.max(from, Math.min(to, from + limit));
      const body = text.subarray(starts[from], starts[end]);
      response.writeHead(200, {
        "content-type": "application/x-ndjson",
        "content-length": String(body.byteLength),
      });
      return response.end(body);
    }
    default:
      return response
        .writeHead(404, json)
        .end('{"error":{"code":"route_not_found","message":"no such route"}}');
  }
});
server.listen(0, "127.0.0.1");
await once(server, "listening");
process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\n`);
