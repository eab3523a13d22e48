import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { type GatewayOptions, openRestGateway } from "../../src/gateway/rest/rest-gateway.ts";
import { RunvaultError } from "../../src/model/error.ts";
import { serveHttp } from "../fixtures/source/gateway-scripted-server.ts";
import { quickRetry } from "../fixtures/source/quick-retry.ts";

const run = { instanceId: "i 1", runId: "r/1" };
const json = { "content-type": "application/json" };
const rowsType = { "content-type": "application/x-ndjson" };

/** A source whose gateway has these documents by path, and a 404 without an envelope for the rest. */
async function withDocuments<T>(
  documents: Record<string, unknown>,
  ask: (gateway: ReturnType<typeof openRestGateway>) => Promise<T>,
): Promise<{ answer: T | undefined; error: RunvaultError | undefined; requests: readonly string[] }> {
  await using server = await serveHttp((request, response) => {
    const document = documents[(request.url ?? "").split("?")[0] ?? ""];
    if (document === undefined) response.writeHead(404).end();
    else
      response.writeHead(200, json).end(typeof document === "string" ? document : JSON.stringify(document));
  });
  await using gateway = openRestGateway({ baseUrl: server.url, retry: quickRetry({ retries: 0 }) });
  try {
    return { answer: await ask(gateway), error: undefined, requests: server.requests };
  } catch (thrown) {
    if (!(thrown instanceof RunvaultError)) throw thrown;
    return { answer: undefined, error: thrown, requests: server.requests };
  }
}

const runEntry = {
  run_id: "r/1",
  instance_id: "i 1",
  status: "FINISHED",
  ts_started: "1640995260000000001",
  ts_ended: "0",
  final: true,
  storage_version: "v1",
};
const tableFacts = {
  table: "fills",
  rows: "18446744073709551615",
  min_ts_event: "9007199254740993",
  max_ts_event: "9223372036854775807",
  schema_fingerprint: "f",
  final: false,
};

test("runs keep their 64-bit times exact, and an end of zero is a run that goes on", async () => {
  const { answer, requests } = await withDocuments({ "/history/runs": { runs: [runEntry] } }, (gateway) =>
    gateway.runs("i 1"),
  );
  expect(answer).toEqual([
    {
      ...run,
      status: "FINISHED",
      started: 1640995260000000001n,
      ended: undefined,
      final: true,
      storageVersion: "v1",
    },
  ]);
  expect(requests).toEqual(["GET /history/runs?instance=i%201"]);
});

test("facts keep 64-bit counts and times exact, and are asked for the bounds", async () => {
  const documents = { "/history/storage": { tables: [tableFacts, { ...tableFacts, table: "of_tomorrow" }] } };
  const { answer, requests } = await withDocuments(documents, (gateway) =>
    gateway.facts(run, { from: -1n, to: 5n }),
  );
  expect([...(answer ?? [])]).toEqual([
    [
      "fills",
      {
        rows: 18446744073709551615n,
        first: 9007199254740993n,
        last: 9223372036854775807n,
        schemaFingerprint: "f",
        final: false,
      },
    ],
  ]);
  expect(requests).toEqual(["GET /history/storage?instance=i%201&run_id=r%2F1&from=-1&to=5"]);
});

const plainFacts = { ...tableFacts, rows: "2" };

test("row checksums keep 128 bits, and are asked for with the table they are wanted of", async () => {
  const most = (1n << 128n) - 1n;
  const documents = {
    "/history/storage": {
      tables: [
        { ...plainFacts, row_checksum: `${most}` },
        { ...plainFacts, table: "bars" },
      ],
    },
  };
  const { answer, requests } = await withDocuments(documents, (gateway) =>
    gateway.facts(run, {}, undefined, { withHash: true, table: "fills" }),
  );
  expect([...(answer ?? [])]).toEqual([["fills", expect.objectContaining({ rows: 2n, rowHash: most })]]);
  expect(requests).toEqual([
    "GET /history/storage?instance=i%201&run_id=r%2F1&with_checksum=true&table=fills",
  ]);
});

test.each(["-1", "1.5", "0x1f", " 1", `${1n << 128n}`, 5])(
  "a row checksum that is none, %j, is an answer that is not the interface's",
  async (row_checksum) => {
    const documents = { "/history/storage": { tables: [{ ...plainFacts, row_checksum }] } };
    const { error } = await withDocuments(documents, (gateway) =>
      gateway.facts(run, {}, undefined, { withHash: true }),
    );
    expect(error?.code).toBe("not_a_gateway");
  },
);

// caught by: ends that are forgotten because no rows are counted, and what stands for none that is taken for ends
test.each([
  ["7", "9", 7n, 9n],
  ["0", "0", undefined, undefined],
  ["-1", "-1", undefined, undefined],
  ["9223372036854775807", "-9223372036854775808", undefined, undefined],
  ["0", "9223372036854775807", undefined, undefined],
])("facts of no rows from %s to %s tell these ends", async (min_ts_event, max_ts_event, first, last) => {
  const document = { tables: [{ ...tableFacts, rows: "0", min_ts_event, max_ts_event }] };
  const { answer } = await withDocuments({ "/history/storage": document }, (gateway) =>
    gateway.facts(run, {}),
  );
  expect(answer?.get("fills")).toMatchObject({ rows: 0n, first, last });
});

test("instances name their runs; a gateway that gives only the latest run gives that one", async () => {
  const documents = {
    "/history/instances": {
      instances: [
        { instance_id: "a", run_ids: ["1", "2"], latest_run_id: "2" },
        { instance_id: "b", latest_run_id: "9" },
        { instance_id: "d", run_ids: ["1"], latest_run_id: "2" },
        { instance_id: "c" },
      ],
    },
  };
  const { answer } = await withDocuments(documents, (gateway) => gateway.instances());
  expect(answer).toEqual([
    { instanceId: "a", runIds: ["1", "2"] },
    { instanceId: "b", runIds: ["9"] },
    { instanceId: "d", runIds: ["1", "2"], latestBeside: "2" },
    { instanceId: "c", runIds: [] },
  ]);
});

test("a gateway without the optional routes gives null, and no instances is an error", async () => {
  const { answer } = await withDocuments({}, async (gateway) => [
    await gateway.runs("i 1"),
    await gateway.facts(run, {}),
    await gateway.document(run, "run"),
    await gateway.document(run, "resources"),
    await gateway.document(run, "facts"),
    await gateway.document(run, "instance"),
  ]);
  expect(answer).toEqual([null, null, null, null, null, null]);
  expect((await withDocuments({}, (gateway) => gateway.instances())).error?.code).toBe("route_not_found");
});

test("documents come back as the bytes they came as", async () => {
  const documents = {
    "/history/summary": '{ "run_id":"r/1",\n "instance_id": "i 1", "fees": "1.10" }',
    "/history/runs": JSON.stringify({ runs: [runEntry] }, null, 3),
    "/history/storage": JSON.stringify({ tables: [] }, null, 1),
    "/history/resources": '{"resources": [] }',
    "/instances/i%201": '{"instanceId":"i 1"  }',
  };
  const kinds = ["summary", "run", "facts", "resources", "instance"] as const;
  const { answer } = await withDocuments(documents, (gateway) =>
    Promise.all(kinds.map(async (kind) => Buffer.from((await gateway.document(run, kind)) ?? []).toString())),
  );
  const own = documents["/history/runs"].slice(documents["/history/runs"].indexOf("{", 1));
  const entry = own.slice(0, own.indexOf("}") + 1);
  expect(answer).toEqual(Object.values({ ...documents, "/history/runs": entry }));
});

test("a run's document is its own entry in the list as it stands there, whatever stands around it", async () => {
  const entry =
    '{"status":"FINISHED" ,"run_id":"r/1","instance_id":"i 1","ts_started":"1","ts_ended":"2","final":true,"note":"a \\"]}, b","more":{"runs":[1,[2]]}}';
  const other = JSON.stringify({ ...runEntry, run_id: "other" });
  for (const list of [
    `{"runs":[${other} ,\n ${entry}]}`,
    `{"of":{"runs":[{}]},"\\u0072uns": [ ${entry} ] , "runs_": [3]}`,
    `{"runs":[${other}],"runs":[${entry},${other}]}`,
  ]) {
    const asked = withDocuments({ "/history/runs": list }, (gateway) => gateway.document(run, "run"));
    expect(Buffer.from((await asked).answer!).toString(), list).toBe(entry);
  }
});

test("an instance's current run is the one that its own document names, if any", async () => {
  const currentRun = async (document: object) => {
    const { answer, error } = await withDocuments({ "/instances/i%201": document }, async (gateway) =>
      (await gateway.listings!())[0]!.currentRun("i 1"),
    );
    return error === undefined ? answer : error.code;
  };
  expect(await currentRun({ instanceId: "i 1", currentRunId: "r/1" })).toBe("r/1");
  expect(await currentRun({ instanceId: "i 1", currentRunId: "" })).toBeNull();
  expect(await currentRun({ instanceId: "i 1", currentRunId: "current" })).toBeNull();
  expect(await currentRun({ instanceId: "i 1" })).toBeNull();
  expect(await currentRun({ instanceId: "another", currentRunId: "r" })).toBe("history_identity_conflict");
  expect(await currentRun({ instanceId: "i 1", currentRunId: 7 })).toBe("not_a_gateway");
});

test("an entry of the list of runs that is not as the interface says costs its run alone", async () => {
  const odd = { ...runEntry, run_id: "odd", ts_started: 1.5 };
  const { answer } = await withDocuments({ "/history/runs": { runs: [runEntry, odd] } }, async (gateway) => {
    const [listing] = await gateway.listings!();
    return await listing!.runs(run.instanceId);
  });
  expect(answer).toMatchObject([
    { runId: run.runId, status: runEntry.status },
    { runId: "odd", fault: { code: "not_a_gateway", scope: "run", place: { run: "odd" } } },
  ]);
});

// one foreign entry kept all runs of the instance from being archived
test("an entry of another instance in the list of runs costs that entry alone, and says what it names", async () => {
  const foreign = { ...runEntry, run_id: "r9", instance_id: "beta" };
  const { answer } = await withDocuments(
    { "/history/runs": { runs: [foreign, runEntry] } },
    async (gateway) => {
      const [listing] = await gateway.listings!();
      return await listing!.runs(run.instanceId);
    },
  );
  expect(answer).toMatchObject([
    { runId: "r9", fault: { code: "history_identity_conflict", scope: "run", exit: 4 } },
    { runId: run.runId, status: runEntry.status },
  ]);
  const { message, hint } = answer![0]!.fault!;
  expect(message).toBe(
    `the document names run r9 of instance beta, but instance ${run.instanceId} was asked for`,
  );
  expect(hint).toContain("operator");
});

test("a run that the list of runs does not name has no run document", async () => {
  const documents = { "/history/runs": { runs: [{ ...runEntry, run_id: "other" }] } };
  expect((await withDocuments(documents, (gateway) => gateway.document(run, "run"))).answer).toBeNull();
});

const wrong: [what: string, path: string, document: unknown, code: string][] = [
  [
    "a number where a 64-bit string belongs",
    "/history/storage",
    { tables: [{ ...tableFacts, rows: 5 }] },
    "not_a_gateway",
  ],
  [
    "a count beyond 64 bits",
    "/history/storage",
    { tables: [{ ...tableFacts, rows: "18446744073709551616" }] },
    "not_a_gateway",
  ],
  ["the same table twice", "/history/storage", { tables: [tableFacts, tableFacts] }, "not_a_gateway"],
  [
    "times the wrong way round",
    "/history/storage",
    { tables: [{ ...tableFacts, max_ts_event: "1" }] },
    "not_a_gateway",
  ],
  [
    "another instance's run",
    "/history/runs",
    { runs: [{ ...runEntry, instance_id: "x" }] },
    "history_identity_conflict",
  ],
  ["a run called current", "/history/runs", { runs: [{ ...runEntry, run_id: "current" }] }, "not_a_gateway"],
  ["another run's summary", "/history/summary", { run_id: "x" }, "history_identity_conflict"],
  ["a list where an object belongs", "/history/summary", [], "not_a_gateway"],
  ["half a document", "/history/summary", '{"run_id":', "not_a_gateway"],
];
for (const [what, path, document, code] of wrong) {
  test(`${what} is ${code}`, async () => {
    const { error } = await withDocuments({ [path]: document }, async (gateway) =>
      path === "/history/storage"
        ? await gateway.facts(run, {})
        : path === "/history/runs"
          ? await gateway.runs(run.instanceId)
          : await gateway.document(run, "summary"),
    );
    expect(error?.code).toBe(code);
  });
}

test("a document of a few bytes that becomes more than 16 MiB is refused", async () => {
  const bomb = gzipSync(Buffer.alloc(17 * 1024 * 1024, 0x20));
  await using server = await serveHttp((_request, response) => {
    response.writeHead(200, { ...json, "content-encoding": "gzip" }).end(bomb);
  });
  await using gateway = openRestGateway({ baseUrl: server.url, retry: quickRetry({ retries: 0 }) });
  await expect(gateway.document(run, "summary")).rejects.toMatchObject({ code: "limit_exceeded" });
});

test("a document beyond 16 MiB is refused without reading it to its end", async () => {
  await using server = await serveHttp((_request, response) => {
    response.writeHead(200, json);
    const block = Buffer.alloc(1024 * 1024, 0x20);
    const more = () => {
      while (response.write(block));
      response.once("drain", more);
    };
    more();
  });
  await using gateway = openRestGateway({ baseUrl: server.url, retry: quickRetry({ retries: 3 }) });
  await expect(gateway.document(run, "summary")).rejects.toMatchObject({ code: "limit_exceeded" });
  expect(gateway.stats.requests).toBe(1);
  expect(gateway.stats.bytes).toBeLessThan(20 * 1024 * 1024);
});

test("a row request names table, run, bounds, limit and filters", async () => {
  await using server = await serveHttp((_request, response) => response.writeHead(200, rowsType).end());
  await using gateway = openRestGateway({ baseUrl: `${server.url}/api/v1/` });
  const request = {
    ...run,
    table: "order_book",
    from: 1n,
    to: 9223372036854775807n,
    limit: 7,
    filters: { symbol: "BTC&x" },
  } as const;
  for await (const _ of gateway.rows(request)) throw new Error("there are no rows");
  expect(server.requests).toEqual([
    "GET /api/v1/history/order-book?instance=i%201&run_id=r%2F1&from=1&to=9223372036854775807&limit=7&symbol=BTC%26x",
  ]);
});

/** A server of endless rows that counts what it wrote and notices when the reader leaves. */
async function endlessRows() {
  const state = { written: 0, closed: 0, open: 0, mostOpen: 0 };
  const server = await serveHttp((_request, response) => {
    state.open += 1;
    state.mostOpen = Math.max(state.mostOpen, state.open);
    response.on("close", () => {
      state.open -= 1;
      state.closed += 1;
    });
    response.writeHead(200, rowsType);
    const block = Buffer.alloc(256 * 1024, "{}\n");
    const more = () => {
      let room = true;
      while (room && !response.destroyed) {
        room = response.write(block);
        state.written += block.length;
      }
      if (!response.destroyed) response.once("drain", more);
    };
    more();
  });
  return { server, state };
}

async function withEndless(
  options: Partial<GatewayOptions>,
  work: (
    gateway: ReturnType<typeof openRestGateway>,
    state: { written: number; closed: number; mostOpen: number },
  ) => Promise<void>,
): Promise<void> {
  const { server, state } = await endlessRows();
  await using _server = server;
  await using gateway = openRestGateway({
    baseUrl: server.url,
    retry: quickRetry({ retries: 0 }),
    ...options,
  });
  await work(gateway, state);
}

const fills = { ...run, table: "fills" } as const;

test("a reader that leaves early ends the request", async () => {
  await withEndless({}, async (gateway, state) => {
    for await (const chunk of gateway.rows(fills)) {
      expect(chunk.length).toBeGreaterThan(0);
      break;
    }
    await expect.poll(() => state.closed).toBe(1);
  });
});

test("a reader that pauses stops the gateway, and its pause is no timeout", async () => {
  const idleMs = 800;
  await withEndless({ bodyIdleTimeoutMs: idleMs }, async (gateway, state) => {
    let read = 0;
    for await (const chunk of gateway.rows(fills)) {
      read += chunk.length;
      if (read === chunk.length) {
        // until nothing was written for longer than an answer may be silent
        for (let before = -1; before !== state.written; await sleep(idleMs * 1.5)) before = state.written;
        expect(gateway.stats.bytes).toBeLessThan(2 * 1024 * 1024);
      }
      if (read > 20_000_000) break;
    }
    expect(read).toBeGreaterThan(20_000_000);
  });
});

test("an abort ends a request in mid-body, and so does closing the source", async () => {
  await withEndless({}, async (gateway, state) => {
    const abort = new AbortController();
    const aborted = (async () => {
      for await (const _ of gateway.rows({ ...fills, signal: abort.signal })) abort.abort();
    })();
    await expect(aborted).rejects.toMatchObject({ code: "interrupted" });
    await expect.poll(() => state.closed).toBe(1);
    const closed = (async () => {
      for await (const _ of gateway.rows(fills)) await gateway[Symbol.asyncDispose]();
    })();
    await expect(closed).rejects.toMatchObject({ code: "interrupted" });
    await expect.poll(() => state.closed).toBe(2);
  });
});

test("an abort ends the wait before a retry at once", async () => {
  await using server = await serveHttp((_request, response) =>
    response.writeHead(503, { "retry-after": "60" }).end(),
  );
  const abort = new AbortController();
  await using gateway = openRestGateway({
    baseUrl: server.url,
    retry: quickRetry({ onRetry: () => setTimeout(() => abort.abort(), 20) }),
  });
  await expect(gateway.instances(abort.signal)).rejects.toMatchObject({ code: "interrupted" });
  expect(server.requests.length).toBe(1);
});

test("no more rows are open at a time than the concurrency says, and documents do not wait for them", async () => {
  await using server = await serveHttp((request, response) => {
    if (request.url?.startsWith("/history/storage")) {
      response.writeHead(200, json).end('{"tables":[]}');
      return;
    }
    open += 1;
    mostOpen = Math.max(mostOpen, open);
    if (open === 2) two.resolve();
    response.writeHead(200, rowsType).write("{}\n");
    void two.promise
      .then(() => sleep(30))
      .then(() => {
        open -= 1;
        response.end("{}\n");
      });
  });
  // none ends before two are open
  const two = Promise.withResolvers<void>();
  let open = 0;
  let mostOpen = 0;
  await using gateway = openRestGateway({ baseUrl: server.url, concurrency: 2 });
  const readers = Array.from({ length: 7 }, async () => {
    let bytes = 0;
    for await (const chunk of gateway.rows(fills)) {
      bytes += chunk.length;
      expect((await gateway.facts(run, {}))?.size).toBe(0);
    }
    return bytes;
  });
  expect(await Promise.all(readers)).toEqual(Array(7).fill(6));
  expect(mostOpen).toBe(2);
});

test("no more requests start in a second than the rate says", async () => {
  await using server = await serveHttp((_request, response) =>
    response.writeHead(200, json).end('{"instances":[]}'),
  );
  await using gateway = openRestGateway({ baseUrl: server.url, maxRequestsPerSecond: 5, concurrency: 20 });
  const started = performance.now();
  await Promise.all(Array.from({ length: 11 }, () => gateway.instances()));
  expect(performance.now() - started).toBeGreaterThan(1900);
});
