/** How messages are dropped for a slow client: the catalog's drop policies. */
export type DropPolicy = "NEVER" | "OLDEST" | "CONFLATE";

/** Most waiting messages and bytes of one stream; CONFLATE keeps one message. */
export const mostWaiting = 256;
const mostWaitingBytes = 1024 * 1024;

interface Waiting {
  /** Order of arrival across all streams of the outbox. */
  readonly order: number;
  readonly bytes: number;
  text(dropped: number): string;
}

/**
 * Messages on their way to one client, one at a time, in order. However slow the client, only a limited number waits
 * per stream; the stream's drop policy decides about the rest.
 */
export class LiveOutbox {
  readonly #send: (text: string) => Promise<void>;
  readonly #onOverflow: () => void;
  readonly #streams = new Set<OutboxStream>();
  #order = 0;
  #sending = false;
  #closed = false;

  /**
   * `send` resolves when the connection has taken the text, and rejects when it is gone. `onOverflow` is called when a
   * stream that must not drop exceeds its limit.
   */
  constructor(send: (text: string) => Promise<void>, onOverflow: () => void) {
    this.#send = send;
    this.#onOverflow = onOverflow;
  }

  /** `onDrop` is called for each dropped message. */
  stream(policy: DropPolicy, onDrop: () => void = () => {}): OutboxStream {
    const stream = new OutboxStream(policy, {
      nextOrder: () => this.#order++,
      wake: () => void this.#run(),
      onDrop,
      onOverflow: () => {
        if (this.#closed) return;
        this.close();
        this.#onOverflow();
      },
      onClose: () => this.#streams.delete(stream),
    });
    if (this.#closed) stream.close();
    else this.#streams.add(stream);
    return stream;
  }

  /** Drops everything that waits. */
  close(): void {
    this.#closed = true;
    for (const stream of [...this.#streams]) stream.close();
  }

  async #run(): Promise<void> {
    if (this.#sending) return;
    this.#sending = true;
    try {
      for (let text = this.#take(); text !== undefined; text = this.#take()) await this.#send(text);
    } catch {
      // the connection is gone, and its owner knows
      this.close();
    } finally {
      this.#sending = false;
    }
  }

  #take(): string | undefined {
    let first: OutboxStream | undefined;
    for (const stream of this.#streams) {
      if (stream.headOrder < (first?.headOrder ?? Number.POSITIVE_INFINITY)) first = stream;
    }
    return first?.take();
  }
}

interface StreamHooks {
  nextOrder(): number;
  wake(): void;
  onDrop(): void;
  onOverflow(): void;
  onClose(): void;
}

/** The messages of one feed to one client. */
export class OutboxStream {
  readonly #policy: DropPolicy;
  readonly #hooks: StreamHooks;
  readonly #waiting: Waiting[] = [];
  #bytes = 0;
  #dropped = 0;
  #closed = false;
  #finished = false;
  #onTaken: (() => void) | undefined;

  constructor(policy: DropPolicy, hooks: StreamHooks) {
    this.#policy = policy;
    this.#hooks = hooks;
  }

  /** When the first waiting message came; Infinity without one. */
  get headOrder(): number {
    return this.#waiting[0]?.order ?? Number.POSITIVE_INFINITY;
  }

  /** Adds a message that may be dropped. `text` gets the number of messages dropped since the last one. */
  put(bytes: number, text: (dropped: number) => string): void {
    if (this.#closed) return;
    const most = this.#policy === "CONFLATE" ? 1 : mostWaiting;
    while (
      this.#waiting.length >= most ||
      (this.#waiting.length > 0 && this.#bytes + bytes > mostWaitingBytes)
    ) {
      if (this.#policy === "NEVER") {
        this.#hooks.onOverflow();
        return;
      }
      this.#bytes -= this.#waiting.shift()!.bytes;
      this.#dropped += 1;
      this.#hooks.onDrop();
    }
    this.#add(bytes, text);
  }

  /** Adds a message at the client's pace: once nothing else waits. False when the stream is closed. */
  async putInTurn(bytes: number, text: (dropped: number) => string): Promise<boolean> {
    while (this.#waiting.length > 0 && !this.#closed) {
      await new Promise<void>((resolve) => {
        this.#onTaken = resolve;
      });
    }
    if (this.#closed) return false;
    this.#add(bytes, text);
    return true;
  }

  /** The first message that waits. */
  take(): string | undefined {
    const first = this.#waiting.shift();
    if (first === undefined) return undefined;
    this.#bytes -= first.bytes;
    const dropped = this.#dropped;
    this.#dropped = 0;
    this.#onTaken?.();
    if (this.#finished && this.#waiting.length === 0) this.close();
    return first.text(dropped);
  }

  /** Accepts nothing more; waiting messages are still sent. */
  finish(): void {
    this.#finished = true;
    if (this.#waiting.length === 0) this.close();
  }

  /** Drops what waits, and all later messages. */

  close(): void {
    this.#closed = true;
    this.#waiting.length = 0;
    this.#hooks.onClose();
    this.#onTaken?.();
  }

  #add(bytes: number, text: (dropped: number) => string): void {
    this.#bytes += bytes;
    this.#waiting.push({ order: this.#hooks.nextOrder(), bytes, text });
    this.#hooks.wake();
  }
}
