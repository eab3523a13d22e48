import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import { openRestGateway } from "../../src/gateway/rest/rest-gateway.ts";
import { openRpcGateway } from "../../src/gateway/rpc/rpc-gateway.ts";
import type { HistorySource } from "../../src/model/source.ts";
import { type Served, serve } from "../../src/serve/server.ts";
import { openSimulator, type Simulator } from "../../src/simulator/simulator.ts";
import { historySourceContract, type SourceUnderTest } from "../fixtures/source/history-source-contract.ts";

const run = { instanceId: "alpha-1", runId: "2022-01-01-001" };
let cacheDir: string;
let world: Simulator;
let server: Served;

beforeAll(async () => {
  cacheDir = await mkdtemp(join(tmpdir(), "history-source-"));
  world = await openSimulator({ cacheDir, runs: 1, rows: 4_000, clock: () => 2n ** 62n });
  server = await serve({ source: world, control: world, host: "127.0.0.1", port: 0 });
});
afterAll(async () => {
  await server.close();
  await world[Symbol.asyncDispose]();
  await rm(cacheDir, { recursive: true, force: true });
});

/** A client of the server, whose documents must be those of REST. */
function remote(open: (baseUrl: string) => HistorySource): () => Promise<SourceUnderTest> {
  return async () => {
    const source = open(server.url);
    const documents = openRestGateway({ baseUrl: server.url });
    return {
      source,
      truth: world,
      documents,
      run,
      [Symbol.asyncDispose]: async () => {
        await source[Symbol.asyncDispose]();
        await documents[Symbol.asyncDispose]();
      },
    };
  };
}

historySourceContract("the simulator", async () => ({
  source: world,
  truth: world,
  run,
  [Symbol.asyncDispose]: async () => {},
}));
historySourceContract(
  "a gateway over REST",
  remote((baseUrl) => openRestGateway({ baseUrl })),
);
historySourceContract("a simulator that serves templates", () => ofTemplates((_url, source) => source));
historySourceContract("templates over REST", () => ofTemplates((baseUrl) => openRestGateway({ baseUrl })));
historySourceContract("templates over RPC", () => ofTemplates((baseUrl) => openRpcGateway({ baseUrl })));

/** A run with the rows of another that is rendered. */
async function ofTemplates(
  open: (baseUrl: string, source: HistorySource) => HistorySource,
): Promise<SourceUnderTest> {
  const owned = new AsyncDisposableStack();
  const options = { cacheDir, runs: 9, templates: 2, rows: 4_000, clock: () => 2n ** 62n };
  const truth = owned.use(await openSimulator(options));
  const served = await serve({ source: truth, control: truth, host: "127.0.0.1", port: 0 });
  owned.defer(() => served.close());
  const source = open(served.url, truth);
  const documents = owned.use(openRestGateway({ baseUrl: served.url }));
  if (source !== truth) owned.use(source);
  return {
    source,
    truth,
    ...(source === truth ? {} : { documents }),
    run: { instanceId: "alpha-1", runId: "2022-01-08-000008" },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

historySourceContract(
  "a gateway over RPC",
  remote((baseUrl) => openRpcGateway({ baseUrl })),
);
