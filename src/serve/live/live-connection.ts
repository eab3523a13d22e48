import type { WebSocket } from "ws";
import type { ControlPlane, LiveFeed } from "../../model/control.ts";
import { RunvaultError } from "../../model/error.ts";
import { gatewayError, isForOwner } from "../envelope.ts";
import type { ServiceMetrics } from "../monitoring/service-metrics.ts";
import { readClientFrame, serverFrame, valuesFrame } from "./live-frame.ts";
import { type DropPolicy, LiveOutbox, type OutboxStream } from "./live-outbox.ts";

/** From the contract of Subscribe. */
const mostSubscriptions = 16;
/** A connection that does not answer a ping before the next one is dead. */
const pingMs = 30_000;
/** Otherwise pongs to a client that does not read would pile up. */
const mostPongBytes = 64 * 1024;

/** Time for a slow client to take the close of its connection. */
const closeMs = 5_000;

/** WebSocket close codes for our reasons. */
export const closeCode = { goingAway: 1001, policy: 1008 } as const;

export interface LiveConnectionOptions {
  readonly control: ControlPlane;
  readonly instanceId: string;
  readonly metrics: ServiceMetrics;
  readonly onError: (error: RunvaultError) => void;
  /** Called once the connection is closed. */
  readonly onClose: (sent: Sent) => void;
}

/** What was sent over a connection's life. */
export interface Sent {
  readonly rows: number;
  readonly bytes: number;
}

interface Subscription {
  readonly ending: AbortController;
  readonly streams: OutboxStream[];
}

/** One client's WebSocket: its subscriptions, and the messages on their way to it. */
export class LiveConnection {
  readonly #socket: WebSocket;
  readonly #options: LiveConnectionOptions;
  readonly #outbox: LiveOutbox;
  readonly #replies: OutboxStream;
  readonly #subscriptions = new Map<string, Subscription>();
  #late: NodeJS.Timeout | undefined;
  #rows = 0;
  #bytes = 0;

  constructor(socket: WebSocket, options: LiveConnectionOptions) {
    this.#socket = socket;
    this.#options = options;
    this.#outbox = new LiveOutbox(
      (text) =>
        new Promise((resolve, reject) => {
          this.#bytes += Buffer.byteLength(text);
          socket.send(text, (error) => (error == null ? resolve() : reject(error)));
        }),
      () => this.#giveUp(),
    );
    this.#replies = this.#outbox.stream("NEVER");
    let isAlive = true;
    const ping = setInterval(() => {
      if (!isAlive) socket.terminate();
      isAlive = false;
      socket.ping();
    }, pingMs);
    options.metrics.connections.inc();
    socket.on("message", (data, isBinary) => this.#receive(String(data), isBinary));
    socket.on("pong", () => {
      isAlive = true;
    });
    socket.on("ping", (data) => {
      if (socket.bufferedAmount > mostPongBytes) socket.terminate();
      else socket.pong(data);
    });
    socket.once("close", () => {
      clearInterval(ping);
      clearTimeout(this.#late);
      options.metrics.connections.dec();
      this.#endAll();
      this.#outbox.close();
      options.onClose({ rows: this.#rows, bytes: this.#bytes });
    });
  }

  /** Closes the connection of a client that does not read, and so may never notice. */
  #giveUp(): void {
    this.#endAll();
    this.#socket.close(closeCode.policy, "the client does not read its messages");
    this.#late = setTimeout(() => this.#socket.terminate(), closeMs);
  }

  #endAll(): void {
    for (const key of [...this.#subscriptions.keys()]) this.#end(key);
  }

  #receive(text: string, isBinary: boolean): void {
    let key = "";
    try {
      if (isBinary) throw new RunvaultError("invalid_argument", "frames must be text");
      const { case: kind, value } = readClientFrame(text);
      key = value.resourceKey;
      if (kind === "subscribe") this.#subscribe(key);
      else this.#unsubscribe(key);
    } catch (error) {
      this.#refuse(key, error);
    }
  }

  #subscribe(key: string): void {
    if (this.#subscriptions.has(key)) {
      throw new RunvaultError("state_conflict", `there is already a subscription to ${JSON.stringify(key)}`);
    }
    if (this.#subscriptions.size >= mostSubscriptions) {
      throw new RunvaultError(
        "limit_exceeded",
        `a connection takes at most ${mostSubscriptions} subscriptions`,
        {
          hint: "Unsubscribe from another key, or open another connection.",
        },
      );
    }
    const subscription = { ending: new AbortController(), streams: [] };
    this.#subscriptions.set(key, subscription);
    this.#options.metrics.subscriptions.inc();
    void this.#serve(key, subscription);
  }

  #unsubscribe(key: string): void {
    if (!this.#end(key)) {
      throw new RunvaultError("resource_not_found", `there is no subscription to ${JSON.stringify(key)}`);
    }
    this.#reply(serverFrame({ case: "unsubscribed", value: { resourceKey: key } }));
  }

  async #serve(key: string, subscription: Subscription): Promise<void> {
    const { control, instanceId } = this.#options;
    const { signal } = subscription.ending;
    try {
      const feeds = await control.feeds(instanceId, key);
      if (signal.aborted) return;
      const told = feeds.map(({ contract, identity }) => ({ contract, identity: [...identity] }));
      this.#reply(serverFrame({ case: "subscribed", value: { resourceKey: key, feeds: told } }));
      await Promise.all(feeds.map((feed) => this.#deliver(feed, subscription)));
      if (signal.aborted) return;
      // it is sent after the values that still wait
      this.#subscriptions.delete(key);
      this.#options.metrics.subscriptions.dec();
      this.#reply(serverFrame({ case: "ended", value: { resourceKey: key } }));
    } catch (error) {
      if (signal.aborted) return;
      this.#end(key);
      this.#refuse(key, error);
    }
  }

  async #deliver(feed: LiveFeed, { ending, streams }: Subscription): Promise<void> {
    const { dropped } = this.#options.metrics;
    const stream = this.#outbox.stream((feed.contract.dropPolicy ?? "NEVER") as DropPolicy, () =>
      dropped.inc(),
    );
    streams.push(stream);
    let number = 0;
    for await (const value of feed.values(ending.signal)) {
      if (ending.signal.aborted) return;
      number += 1;
      const head = { resourceKey: feed.resourceKey, number };
      const text = (lost: number) => {
        this.#rows += value.rows.length;
        return valuesFrame({ ...head, dropped: lost }, value);
      };
      const bytes = value.rows.reduce((sum, row) => sum + row.length, 0);
      if (!value.replayed) stream.put(bytes, text);
      else if (!(await stream.putInTurn(bytes, text))) return;
    }
    stream.finish();
  }

  /** Ends a subscription at once and drops its waiting messages. False if there is none. */
  #end(key: string): boolean {
    const subscription = this.#subscriptions.get(key);
    if (subscription === undefined) return false;
    this.#subscriptions.delete(key);
    this.#options.metrics.subscriptions.dec();
    subscription.ending.abort("the subscription ended");
    for (const stream of subscription.streams) stream.close();
    return true;
  }

  #reply(text: string): void {
    this.#replies.put(text.length, () => text);
  }

  #refuse(key: string, thrown: unknown): void {
    const error = RunvaultError.from(thrown);
    if (isForOwner(error)) this.#options.onError(error);
    this.#reply(serverFrame({ case: "error", value: { resourceKey: key, error: gatewayError(error) } }));
  }
}
