// @module-tag slow
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import { openRestGateway } from "../../src/gateway/rest/rest-gateway.ts";
import { openRpcGateway } from "../../src/gateway/rpc/rpc-gateway.ts";
import type { HistorySource } from "../../src/model/source.ts";
import { type Served, serve } from "../../src/serve/server.ts";
import { parseBookFault } from "../../src/simulator/books/book-fault.ts";
import { type GivenOptions, openSimulator, type Simulator } from "../../src/simulator/simulator.ts";
import { historySourceContract, type SourceUnderTest } from "../fixtures/source/history-source-contract.ts";
import { isTestAll } from "../fixtures/trials/cases.ts";

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
type Opened = (baseUrl: string, source: HistorySource) => HistorySource;
const overEach: readonly (readonly [string, Opened])[] = [
  ["from the simulator", (_url, source) => source],
  ["over REST", (baseUrl) => openRestGateway({ baseUrl })],
  ["over RPC", (baseUrl) => openRpcGateway({ baseUrl })],
];
// in npm test the one over REST, the other over RPC
for (const [nth, [how, open]] of overEach.entries()) {
  // a run with the rows of another that is rendered
  if ((nth === 1) !== isTestAll)
    historySourceContract(`templates ${how}`, () =>
      ofWorld({ runs: 9, templates: 2 }, "2022-01-08-000008", open),
    );
  const manifold = {
    ...{ runs: 1, symbols: 3, currencies: ["USD", "EUR"], accounting: "margin" as const },
    ...{ transfers: 4, fundingMs: 3_600_000, bookFaults: [parseBookFault("lose-fill@*")] },
  };
  if ((nth === 2) !== isTestAll)
    historySourceContract(`faulty books in two currencies ${how}`, () => ofWorld(manifold, run.runId, open));
}

async function ofWorld(
  given: Omit<GivenOptions, "cacheDir">,
  runId: string,
  open: Opened,
): Promise<SourceUnderTest> {
  const owned = new AsyncDisposableStack();
  const options = { cacheDir, rows: 4_000, clock: () => 2n ** 62n, ...given };
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
    run: { instanceId: "alpha-1", runId },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

historySourceContract(
  "a gateway over RPC",
  remote((baseUrl) => openRpcGateway({ baseUrl })),
);
