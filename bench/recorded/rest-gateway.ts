// A gateway with one run's fills from a file of lines, in a separate process: facts within bounds, and rows within
// bounds up to a limit, straight from memory. Its cost is not the client's.
//   node rest-gateway.ts FILE TIMES UNIT_NS
//   TIMES: a file of the lines' instants, one a line, in nanoseconds
//   UNIT_NS: how many of them the unit of a row request's bounds has
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { RecordedTimes, recordedRun } from "./recorded-times.ts";

const [file, timesFile, unitNs] = process.argv.slice(2) as [string, string, string];
const text = await readFile(file);
const times = await RecordedTimes.read(timesFile);
const starts = new Float64Array(times.rows + 1);
for (let row = 1; row <= times.rows; row++) starts[row] = text.indexOf(10, starts[row - 1]) + 1;

const json = { "content-type": "application/json" };
const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url!, "http://gateway");
  const asked = searchParams.get("run_id") ?? recordedRun.run_id;
  if (asked !== recordedRun.run_id) {
    response.writeHead(404, json).end('{"error":{"code":"run_not_found","message":"no such run"}}');
    return;
  }
  // the facts are the contract's own, in nanoseconds
  const unit = pathname === "/history/storage" ? 1n : BigInt(unitNs);
  const { start, end, first, last } = times.within(searchParams.get("from"), searchParams.get("to"), unit);
  const document = (value: object) => response.writeHead(200, json).end(JSON.stringify(value));
  switch (pathname) {
    case "/history/instances":
      return document({
        instances: [{ instance_id: recordedRun.instance_id, run_ids: [recordedRun.run_id] }],
      });
    case "/history/runs": {
      const entry = { ts_started: `${times.ends[0]}`, ts_ended: `${times.ends[1] + 1n}` };
      return document({
        runs: [{ ...recordedRun, status: "FINISHED", ...entry, final: true, storage_version: "1" }],
      });
    }
    case "/history/storage": {
      const ends = { min_ts_event: `${first}`, max_ts_event: `${last}` };
      const rows = String(end - start);
      return document({ tables: [{ table: "fills", rows, ...ends, schema_fingerprint: "1", final: true }] });
    }
    case "/history/fills": {
      const limit = Number(searchParams.get("limit") ?? Number.POSITIVE_INFINITY);
      const body = text.subarray(starts[start], starts[Math.min(end, start + limit)]);
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
