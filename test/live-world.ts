import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { WebSocket } from "undici";
import type { RunRef } from "../src/model/source.ts";
import { type Served, type ServeOptions, serve } from "../src/serve/server.ts";
import { parseInstanceFault } from "../src/simulator/instance-fault.ts";
import {
  openSimulator,
  type RunSpan,
  type Simulator,
  type SimulatorOptions,
} from "../src/simulator/simulator.ts";

export const second = 1_000_000_000n;
export const minute = 60n * second;

export interface LiveWorldOptions extends Partial<SimulatorOptions> {
  readonly faultTexts?: readonly string[];
  readonly serve?: Partial<ServeOptions>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: what a test expects of it says what it is
  json(): any;
}

/** A simulator with one instance whose last run goes on, served; its clock stands until a test moves it. */
export class LiveWorld implements AsyncDisposable {
  readonly simulator: Simulator;
  readonly server: Served;
  readonly run: RunRef;
  readonly span: RunSpan;
  readonly #clock: { now: bigint };
  readonly #folder: string;

  private constructor(
    simulator: Simulator,
    server: Served,
    run: RunRef,
    clock: { now: bigint },
    folder: string,
  ) {
    this.simulator = simulator;
    this.server = server;
    this.run = run;
    this.span = simulator.span(run);
    this.#clock = clock;
    this.#folder = folder;
  }

  /** The clock starts an hour into the run. */
  static async open({
    faultTexts = [],
    serve: served = {},
    ...options
  }: LiveWorldOptions = {}): Promise<LiveWorld> {
    const folder = await mkdtemp(join(tmpdir(), "runvault-live-"));
    const clock = { now: 0n };
    const simulator = await openSimulator({
      cacheDir: folder,
      growing: true,
      runs: 1,
      rows: 2000,
      clock: () => clock.now,
      faults: faultTexts.map(parseInstanceFault),
      ...options,
    });
    const [instance] = await simulator.instances();
    const run = { instanceId: instance!.instanceId, runId: instance!.currentRunId };
    clock.now = simulator.span(run).started + 60n * minute;
    const server = await serve({
      source: simulator,
      control: simulator,
      host: "127.0.0.1",
      port: 0,
      ...served,
    });
    return new LiveWorld(simulator, server, run, clock, folder);
  }

  get now(): bigint {
    return this.#clock.now;
  }

  set now(time: bigint) {
    this.#clock.now = time;
  }

  pass(time: bigint): void {
    this.#clock.now += time;
  }

  async ask(path: string, init: RequestInit = {}): Promise<Answer> {
    const response = await fetch(`${this.server.url}${path}`, init);
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, json: () => JSON.parse(text) };
  }

  post(path: string, init: RequestInit = {}): Promise<Answer> {
    return this.ask(path, { method: "POST", ...init });
  }

  connect(
    path = `/instances/${this.run.instanceId}/ws`,
    headers: Record<string, string> = {},
  ): Promise<LiveClient> {
    return LiveClient.open(`${this.server.url.replace("http", "ws")}${path}`, headers);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server.close();
    await this.simulator[Symbol.asyncDispose]();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

// biome-ignore lint/suspicious/noExplicitAny: frames are what the tests are about
type Frame = any;

/** A WebSocket client that keeps what it was sent. */
export class LiveClient implements Disposable {
  readonly #socket: WebSocket;
  readonly #frames: Frame[] = [];
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
  #arrived: () => void = () => {};

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    this.closed = once(socket as unknown as EventTarget, "close").then(([event]) => event);
    socket.addEventListener("message", ({ data }) => {
      this.#frames.push(JSON.parse(String(data)));
      this.#arrived();
    });
  }

  /** Rejects where the upgrade is refused. */
  static async open(url: string, headers: Record<string, string> = {}): Promise<LiveClient> {
    const socket = new WebSocket(url, { headers });
    const client = new LiveClient(socket);
    await new Promise((resolve, reject) => {
      socket.addEventListener("open", resolve, { once: true });
      socket.addEventListener("error", () => reject(new Error("the upgrade was refused")), { once: true });
    });
    return client;
  }

  send(frame: unknown): void {
    this.sendText(JSON.stringify(frame));
  }

  sendText(text: string): void {
    this.#socket.send(text);
  }

  sendBytes(bytes: Uint8Array): void {
    this.#socket.send(bytes);
  }

  subscribe(resourceKey: string): void {
    this.send({ subscribe: { resourceKey } });
  }

  /** The next frame that was not yet looked at. */
  async next(): Promise<Frame> {
    while (this.#frames.length === 0) {
      await new Promise<void>((resolve) => {
        this.#arrived = resolve;
      });
    }
    return this.#frames.shift();
  }

  /** Frames up to and with the first that `isLast` holds of. */
  async until(isLast: (frame: Frame) => boolean): Promise<Frame[]> {
    const frames: Frame[] = [];
    for (;;) {
      const frame = await this.next();
      frames.push(frame);
      if (isLast(frame)) return frames;
    }
  }

  [Symbol.dispose](): void {
    this.#socket.close();
  }
}
