// Reads every fill of a run and keeps none: through the RPC client, the REST client, or a plain connect-node client that
// builds a message a row. Prints the rows; `rpc.ts` and GNU time take the rest. With WINDOWS the run's time is cut into
// so many, read side by side as `archive` reads its slices.
//   node bench/drain.ts rpc|rest|connect URL INSTANCE RUN [WINDOWS]
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";

const [way, url, instanceId, runId, windows = "1"] = process.argv.slice(2) as [
  string,
  string,
  string,
  string,
];
process.stdout.write(`${await (way === "connect" ? countMessages() : countLines())}\n`);

async function countLines(): Promise<number> {
  const gateway = await openGateway();
  await using open = gateway;
  const run = { instanceId, runId };
  const facts = (await open.facts(run, {}))?.get("fills");
  const first = facts?.first ?? 0n;
  const span = (facts?.last ?? 0n) - first;
  const edge = (i: number) => first + (span * BigInt(i)) / BigInt(windows);
  const counts = Array.from({ length: Number(windows) }, async (_, i) => {
    const isLast = i === Number(windows) - 1;
    let rows = 0;
    for await (const chunk of open.rows({
      ...run,
      table: "fills",
      from: edge(i),
      to: isLast ? undefined : edge(i + 1),
    })) {
      for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) rows++;
    }
    return rows;
  });
  return (await Promise.all(counts)).reduce((sum, rows) => sum + rows, 0);
}

async function openGateway() {
  const options = { baseUrl: url };
  if (way === "rest") {
    const { openRestGateway } = await import("../src/gateway/rest/rest-gateway.ts");
    return openRestGateway(options);
  }
  const { openRpcGateway } = await import("../src/gateway/rpc/rpc-gateway.ts");
  return openRpcGateway(options);
}

async function countMessages(): Promise<number> {
  const { HistoryService } = await import("../src/gen/example/history/v1/history_service_pb.ts");
  const client = createClient(HistoryService, createConnectTransport({ baseUrl: url, httpVersion: "1.1" }));
  let rows = 0;
  let pageToken = "";
  do {
    const page = await client.previewTable({
      table: "fills",
      selection: { instanceId, runId },
      pageSize: 15_000,
      pageToken,
    });
    rows += page.rows.length;
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return rows;
}
