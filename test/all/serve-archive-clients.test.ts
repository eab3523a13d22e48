import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Message, toJson } from "@bufbuild/protobuf";
import { Code, ConnectError, cors, createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { InstanceService } from "../../src/gen/example/gateway/v1/instance_service_pb.ts";
import { HistoryService } from "../../src/gen/example/history/v1/history_service_pb.ts";
import { file_example_history_v1_rows } from "../../src/gen/example/history/v1/rows_pb.ts";
import { tableNames } from "../../src/model/profile/table.ts";
import type { RunRef } from "../../src/model/source.ts";
import { runInside } from "../fixtures/command/command-inside.ts";
import { asPythonShows, pythonRows } from "../fixtures/command/python-modules.ts";
import { requires } from "../fixtures/command/requirement.ts";
import { ServedArchive } from "../fixtures/served/served-archive.ts";

const run = promisify(execFile);
const hasCurl = requires("curl");
let world: ServedArchive;
let last: RunRef;
beforeAll(async () => {
  world = await ServedArchive.open();
  last = world.runs.at(-1)!;
});
afterAll(() => world[Symbol.asyncDispose]());

/** A row message as JSON, by protobuf-es alone. */
function jsonOf(message: Message): unknown {
  const schema = file_example_history_v1_rows.messages.find(
    ({ typeName }) => typeName === message.$typeName,
  )!;
  return toJson(schema, message, {
    useProtoFieldName: true,
    alwaysEmitImplicit: true,
  });
}

describe("a generated Connect client", () => {
  const baseOf = () => new URL(world.url).origin;
  const transports = {
    "Connect, binary": () => createConnectTransport({ baseUrl: baseOf(), httpVersion: "1.1" }),
    "Connect, JSON": () =>
      createConnectTransport({ baseUrl: baseOf(), httpVersion: "1.1", useBinaryFormat: false }),
    "gRPC-Web, below the base address": () =>
      createGrpcWebTransport({ baseUrl: world.url, httpVersion: "1.1" }),
  };

  test.each(Object.keys(transports) as (keyof typeof transports)[])(
    "pages every table to the simulator's rows over %s",
    async (name) => {
      const client = createClient(HistoryService, transports[name]());
      for (const table of tableNames) {
        const rows: unknown[] = [];
        let pages = 0;
        for (let pageToken = ""; ; ) {
          const page = await client.previewTable({ table, selection: last, pageSize: 113, pageToken });
          rows.push(...page.rows.map(({ row }) => jsonOf(row.value!)));
          pages += 1;
          pageToken = page.nextPageToken;
          if (pageToken === "") break;
        }
        const lines = await world.simulatedLines(last, table);
        expect([table, pages]).toEqual([table, Math.max(1, Math.ceil(lines.length / 113))]);
        expect(rows).toEqual(lines.map((line) => JSON.parse(line)));
      }
    },
  );

  test("gets what is typed as it is, and refusals as Connect's codes", async () => {
    const transport = transports["Connect, binary"]();
    const history = createClient(HistoryService, transport);
    const { instances } = await history.listInstances({});
    expect(instances.map(({ latestRunId }) => latestRunId)).toEqual([last.runId]);
    const { tables } = await history.getStorageFacts(last);
    const [firstFill, lastFill] = (await world.simulatedLines(last, "fills"))
      .map((line) => JSON.parse(line))
      .filter((_, i, all) => i === 0 || i === all.length - 1);
    expect(tables.find(({ table }) => table === "fills")).toMatchObject({
      minTsEvent: BigInt(firstFill.ts_event),
      maxTsEvent: BigInt(lastFill.ts_event),
      final: true,
    });
    const started = createClient(InstanceService, transport).startInstance({ instanceId: last.instanceId });
    expect(await started.catch((thrown) => ConnectError.from(thrown).code)).toBe(Code.FailedPrecondition);
  });

  test.skipIf(!requires("rpc-client"))(
    "made in Python pages every table to the simulator's rows",
    async () => {
      const server = { url: baseOf() };
      const seen = await pythonRows(world.folder, server, last, 211, tableNames);
      for (const name of tableNames) {
        const lines = await world.simulatedLines(last, name);
        const rows = seen.filter(({ table }) => table === name).map(({ fields }) => fields);
        expect([name, rows]).toEqual([name, lines.map((line) => asPythonShows(name, line))]);
      }
    },
  );
});

describe("Node's fetch", () => {
  test.each(tableNames)("has the simulator's bytes of %s, and their count", async (table) => {
    const response = await fetch(world.rowsUrl(last, table));
    const lines = await world.simulatedLines(last, table);
    expect(response.headers.get("content-type")).toBe("application/x-ndjson");
    expect(await response.text()).toBe(lines.map((line) => `${line}\n`).join(""));
    expect(response.headers.get("runvault-rows")).toBe(String(lines.length));
  });

  test("takes the latest run where none is named", async () => {
    const { instanceId } = last;
    const response = await fetch(world.rowsUrl({ instanceId, runId: "" }, "fills"));
    expect((await response.text()).trimEnd().split("\n")).toEqual(await world.simulatedLines(last, "fills"));
  });
});

describe.skipIf(!hasCurl)("curl", () => {
  const curl = async (...args: string[]): Promise<Buffer> =>
    (
      await run("curl", ["--silent", "--show-error", "--noproxy", "*", "--fail-with-body", ...args], {
        encoding: "buffer",
      })
    ).stdout;
  const expected = async (query = "") =>
    (await world.simulatedLines(last, "order_book", query)).map((line) => `${line}\n`).join("");

  test("has the simulator's bytes, as they are and --compressed", async () => {
    const url = world.rowsUrl(last, "order_book");
    expect((await curl(url)).toString()).toBe(await expected());
    expect((await curl("--compressed", url)).toString()).toBe(await expected());
  });

  test.skipIf(!requires("zstd"))("gets frames that zstd takes off, whole tables and windows", async () => {
    const lines = (await expected()).trimEnd().split("\n");
    const middle = (JSON.parse(lines[lines.length >> 1]!) as { ts_event: string }).ts_event;
    for (const query of ["", `&to=${middle}`, "&limit=7"]) {
      const file = join(world.folder, "rows.zst");
      await writeFile(
        file,
        await curl("--header", "Accept-Encoding: zstd", world.rowsUrl(last, "order_book", query)),
      );
      const { stdout } = await run("zstd", ["--decompress", "--stdout", file], { encoding: "buffer" });
      expect(stdout.toString()).toBe(await expected(query));
    }
  });

  test("is told what is wrong, with a status it fails by", async () => {
    const refused = (path: string, ...args: string[]) =>
      curl(...args, `${world.url}${path}`).then(
        () => "ok",
        ({ code, stdout }: { code: number; stdout: Buffer }) =>
          [code, JSON.parse(stdout.toString())] as const,
      );
    const { instanceId } = last;
    expect(await refused(`/history/fills?instance=${instanceId}&run_id=current`)).toEqual([
      22,
      { ok: false, error: { code: "run_not_found", message: expect.any(String) } },
    ]);
    expect(await refused(`/instances/${instanceId}/stop`, "--request", "POST")).toEqual([
      22,
      {
        error: {
          code: "ERROR_CODE_CAPABILITY_UNAVAILABLE",
          message: expect.any(String),
          capability: "lifecycle",
          upstreamCode: "",
          hint: expect.stringContaining("gateway"),
        },
      },
    ]);
  });
});

test("an answer that the archive cannot finish is an error to fetch and curl, in every coding", async () => {
  // a server that has not read the table before, of the run that no other test asks for
  const base = await world.serve();
  const url = world.rowsUrl(world.runs[0]!, "order_book", "", base);
  await world.withDamage(world.runs[0]!, "order_book", async () => {
    for (const coding of ["identity", "gzip", "zstd"]) {
      const response = await fetch(url, { headers: { "accept-encoding": coding } });
      expect(response.status).toBe(200);
      await expect(response.text()).rejects.toThrow();
      if (!hasCurl) continue;
      // 18: a partial file, or the stream did not end as its framing wants
      await expect(
        run("curl", [
          "--silent",
          "--noproxy",
          "*",
          "--output",
          "/dev/null",
          "--header",
          `Accept-Encoding: ${coding}`,
          url,
        ]),
      ).rejects.toMatchObject({ code: 18 });
    }
  });
});

test("a page of an origin that is let in may send what Connect's web clients send, and read what comes back", async () => {
  const origin = "https://desk.example";
  const url = world.rowsUrl(last, "fills", "", await world.serve("--cors", origin));
  const names = (headers: Headers, name: string) => headers.get(name)!.toLowerCase().split(", ");
  const asked = {
    origin,
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization",
  };
  const preflight = await fetch(url, { method: "OPTIONS", headers: asked });
  const allowed = names(preflight.headers, "access-control-allow-headers");
  expect(allowed).toEqual(expect.arrayContaining(cors.allowedHeaders.map((name) => name.toLowerCase())));
  expect(allowed).toEqual(expect.arrayContaining(["authorization", "accept"]));
  const answer = await fetch(url, { headers: { origin } });
  const exposed = names(answer.headers, "access-control-expose-headers");
  expect(exposed).toEqual(expect.arrayContaining(cors.exposedHeaders.map((name) => name.toLowerCase())));
  expect(exposed).toContain("runvault-rows");
  expect(answer.headers.get("runvault-rows")).toBe(
    String((await answer.text()).trimEnd().split("\n").length),
  );
});

test("a server that cannot listen says why", async () => {
  const taken = new URL(world.url).port;
  for (const [args, says] of [
    [["--port", taken], "another program is using that port"],
    // an address that is for documentation alone
    [["--host", "192.0.2.1", "--insecure"], "this machine has no such address"],
  ] as const) {
    const { status, stdout, stderr } = await runInside(["serve", "--archive", world.archive.dir, ...args]);
    expect([status, stdout, stderr]).toEqual([2, "", expect.stringContaining(says)]);
  }
});
