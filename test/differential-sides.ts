import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { Agent } from "node:http";
import { join } from "node:path";
import type { FastifyInstance } from "fastify";
import { parquetForms } from "../src/analytics/parquet-forms.ts";
import { openArchive } from "../src/archive/archive.ts";
import { archiveControl } from "../src/archive/archive-control.ts";
import { openArchiveSource } from "../src/archive/archive-source.ts";
import { version } from "../src/cli/version.ts";
import { type Served, type ServeOptions, serve } from "../src/serve/server.ts";
import { TokenList, tokenLine } from "../src/serve/token-list.ts";
import { openSimulator, type Simulator } from "../src/simulator/simulator.ts";
import { runInside } from "./cli-inside.ts";
import type { Door, Phase } from "./differential-request.ts";
import { clockOf, nasty } from "./differential-world.ts";

/** Tokens of the guarded servers, and the instances they are for. */
export const tokens = { all: "0123456789abcdef-everything", first: "0123456789abcdef-the-first" } as const;

/** One of the servers that are compared, behind each of its doors. */
export interface Side {
  readonly name: string;
  readonly servers: Readonly<Record<Door, Served>>;
  readonly agent: Agent;
  /** `METHOD url` of each route as it was registered; ANY where a route takes every method. */
  readonly routes: ReadonlySet<string>;
  /** Those of them that a request came to. */
  readonly reached: ReadonlySet<string>;
  setPhase(phase: Phase): void;
}

/** A simulator, a second one of the same world, and an archive of it that the command line made over the wire. */
export class Sides implements AsyncDisposable {
  readonly simulator: Side;
  readonly twin: Side;
  readonly archive: Side;
  readonly world: Simulator;
  readonly #closing: AsyncDisposableStack;

  private constructor(
    simulator: Side,
    twin: Side,
    archive: Side,
    world: Simulator,
    closing: AsyncDisposableStack,
  ) {
    this.simulator = simulator;
    this.twin = twin;
    this.archive = archive;
    this.world = world;
    this.#closing = closing;
  }

  static async open(folder: string): Promise<Sides> {
    await using opening = new AsyncDisposableStack();
    const { world, side: simulator } = await simulated(folder, "simulator", 0n, opening);
    // another clock, so that what the clock decides is seen to vary by nature
    const { side: twin } = await simulated(folder, "twin", 1n, opening);
    const dir = join(folder, "archive");
    const target = ["--gateway", simulator.servers.open.url, "--archive", dir];
    const made = await runInside(["archive", ...target, "--all", "--finished", "--quiet"]);
    if (made.status !== 0) throw new Error(`archive: exit ${made.status}: ${made.stderr}`);
    const archive = await archived(dir, opening);
    return new Sides(simulator, twin, archive, world, opening.move());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#closing.disposeAsync();
  }
}

async function simulated(
  folder: string,
  name: string,
  laterNs: bigint,
  opening: AsyncDisposableStack,
): Promise<{ world: Simulator; side: Side }> {
  let now = 2n ** 62n;
  const world = opening.use(
    await openSimulator({
      cacheDir: join(folder, "worlds"),
      instances: 2,
      runs: 3,
      rows: 400,
      failed: 2,
      growing: true,
      clock: () => now + laterNs,
      ...nasty,
    }),
  );
  const instants = await clockOf(world);
  const setPhase = (phase: Phase) => {
    now = instants[phase];
  };
  setPhase("ended");
  const about = { name: "runvault simulate", version: version(), kind: "simulator" };
  return { world, side: await sideOf(name, { source: world, control: world, about }, setPhase, opening) };
}

async function archived(dir: string, opening: AsyncDisposableStack): Promise<Side> {
  const archive = await openArchive(dir);
  const source = opening.use(openArchiveSource(archive, { forms: parquetForms }));
  const control = archiveControl(archive, { source, version: version() });
  const about = { name: "runvault serve", version: version(), kind: "archive" };
  // as the command has them
  const limits = { queries: 32, queryMs: 60_000 };
  return await sideOf("archive", { source, control, about, limits }, () => {}, opening);
}

async function sideOf(
  name: string,
  options: Omit<ServeOptions, "host" | "port">,
  setPhase: Side["setPhase"],
  opening: AsyncDisposableStack,
): Promise<Side> {
  const routes = new Set<string>();
  const reached = new Set<string>();
  const serving = async (more: Partial<ServeOptions> = {}): Promise<Served> => {
    const server = await watched(routes, reached, () =>
      serve({ host: "127.0.0.1", port: 0, compress: true, ...options, ...more }),
    );
    opening.defer(() => server.close());
    return server;
  };
  const list = tokenLine(tokens.all, "all", ["*"]) + tokenLine(tokens.first, "first", ["alpha-1"]);
  const servers = {
    open: await serving(),
    fresh: await serving(),
    guarded: await serving({
      tokens: TokenList.parse(list, "tokens"),
      origins: ["https://desk.example"],
    }),
    stopping: await serving(),
  };
  await servers.stopping.drain(0);
  const agent = new Agent({ keepAlive: true });
  opening.defer(() => agent.destroy());
  return { name, servers, agent, routes, reached, setPhase };
}

/** Serves, and notes which routes the server registers and which of them requests come to. */
async function watched(
  routes: Set<string>,
  reached: Set<string>,
  start: () => Promise<Served>,
): Promise<Served> {
  const label = (method: string | string[], url: string) =>
    `${Array.isArray(method) && method.length > 2 ? "ANY" : String(method)} ${url}`;
  const onApp = (message: unknown) => {
    const { fastify: app } = message as { readonly fastify: FastifyInstance };
    app.addHook("onRoute", ({ method, url }) => void routes.add(label(method, url)));
    app.addHook("onRequest", (request, _reply, done) => {
      const { method, url } = request.routeOptions;
      if (!request.is404 && method !== undefined && url !== undefined) reached.add(label(method, url));
      done();
    });
  };
  subscribe("fastify.initialization", onApp);
  try {
    return await start();
  } finally {
    unsubscribe("fastify.initialization", onApp);
  }
}
