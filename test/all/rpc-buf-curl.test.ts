import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { HistoryService } from "../../src/gen/example/history/v1/history_service_pb.ts";
import { tables } from "../../src/model/profile/table.ts";
import { type Served, serve } from "../../src/serve/server.ts";
import { projectFolder as root } from "../fixtures/command/project.ts";
import { ArraySource, rowOf } from "../fixtures/served/serve-source.ts";

const run = promisify(execFile);

const source = new ArraySource(
  Object.fromEntries(
    tables.map(({ name }) => [
      name,
      [
        rowOf(name, {
          seq: "18446744073709551615",
          ts_event: "1640995200000000001",
          symbol: "Ünï",
          value: Number.NaN,
        }),
      ],
    ]),
  ),
);
source.document = async (_run, kind) =>
  Buffer.from(kind === "summary" ? '{"fills":"9007199254740993"}' : '{"resources":[{"resource_key":"k"}]}');

let server: Served;
beforeAll(async () => {
  server = await serve({ source, host: "127.0.0.1", port: 0 });
});
afterAll(() => server.close());

/** The answer of a method, asked as a stranger would: with buf and the proto files alone. */
async function curl(method: string, request: object, ...flags: string[]): Promise<unknown> {
  const url = `${new URL(server.url).origin}/${HistoryService.typeName}/${method}`;
  const args = ["curl", "--schema", "proto", "--data", JSON.stringify(request), ...flags, url];
  const { stdout } = await run(join(root, "node_modules", ".bin", "buf"), args, { cwd: root });
  return JSON.parse(stdout);
}

const alpha = { instanceId: "alpha", runId: "r1" };
const row = { seq: "18446744073709551615", tsEvent: "1640995200000000001", symbol: "Ünï" };

const answers: Record<string, { request: object; answer: object }> = {
  GetDatasource: { request: {}, answer: { available: true } },
  ListInstances: { request: {}, answer: { instances: [{ instanceId: "alpha", latestRunId: "r1" }] } },
  ListRecentFills: { request: { selection: alpha, limit: 5 }, answer: { fills: [row] } },
  ListRuns: {
    request: { instanceId: "alpha" },
    answer: { runs: [{ runId: "r0" }, { tsStarted: "9007199254740993" }] },
  },
  ListResources: { request: alpha, answer: { resources: [{ resourceKey: "k" }] } },
  GetStorageFacts: {
    request: { ...alpha, from: "5" },
    answer: { tables: tables.map(({ name }) => ({ table: name })) },
  },
  GetSummary: { request: alpha, answer: { summary: { fills: "9007199254740993" } } },
  ListPortfolioSeries: { request: { selection: alpha }, answer: { rows: [row] } },
  ListPortfolioMetrics: { request: { selection: alpha }, answer: { rows: [{ ...row, value: "NaN" }] } },
  ListMarketBars: { request: { selection: { ...alpha, symbol: "Ünï" } }, answer: { rows: [row] } },
  PreviewTable: {
    request: { table: "factors", selection: alpha },
    answer: { rows: [{ factorSample: row }] },
  },
};

test("buf curl with the proto files gets an answer of every HistoryService method", async () => {
  expect(Object.keys(answers).sort()).toEqual(HistoryService.methods.map(({ name }) => name).sort());
  for (const [method, { request, answer }] of Object.entries(answers)) {
    expect(await curl(method, request), method).toMatchObject(answer);
  }
});

test("buf curl gets the same over gRPC-Web, and errors with the history code", async () => {
  const { request, answer } = answers.PreviewTable!;
  expect(await curl("PreviewTable", request, "--protocol", "grpcweb")).toMatchObject(answer);
  await expect(curl("GetSummary", { ...alpha, runId: "current" })).rejects.toMatchObject({
    stderr: expect.stringMatching(/not_found.*run_not_found/s),
  });
});
