import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { Transform } from "node:stream";
import { setImmediate } from "node:timers/promises";
import zlib from "node:zlib";
import type { ByteStop } from "../wire-hook.ts";

/** Content encodings for rows. */
export type RowEncoding = "identity" | "gzip" | "zstd";

/** Receives an answer's bytes. The promises resolve to false when the answer is over: stopped, or the client left. */
export interface Sink {
  write(chunk: Uint8Array): Promise<boolean>;
  /** Sends everything written so far. */
  flush(): Promise<void>;
  /** Ends the data, but not the answer itself. */
  end(): Promise<boolean>;
  close(): Promise<void>;
}

/** Waits until a response accepts more; false when its connection is gone. */
export async function roomIn(response: ServerResponse): Promise<boolean> {
  if (response.destroyed) return false;
  if (!response.writableNeedDrain) {
    await setImmediate();
    return !response.destroyed;
  }
  await new Promise<void>((resolve) => {
    const done = () => {
      response.off("drain", done);
      response.off("close", done);
      resolve();
    };
    response.on("drain", done);
    response.on("close", done);
  });
  return !response.destroyed;
}

/** The body of a response, without copies, at the client's pace. */
export class BodySink implements Sink {
  bytes = 0;
  /** How the stop that was reached ends the answer. */
  stopped: "cut" | "whole" | undefined;
  readonly #response: ServerResponse;
  readonly #stops: ByteStop[];

  constructor(response: ServerResponse, stops: readonly ByteStop[]) {
    this.#response = response;
    this.#stops = [...stops].sort((a, b) => a.bytes - b.bytes);
  }

  async write(chunk: Uint8Array): Promise<boolean> {
    if (this.stopped !== undefined) return false;
    for (let stop = this.#stops[0]; stop !== undefined; stop = this.#stops[0]) {
      if (stop.bytes > this.bytes + chunk.length) break;
      this.#stops.shift();
      if (!stop.hit()) continue;
      await this.#put(chunk.subarray(0, stop.bytes - this.bytes));
      this.stopped = stop.ending;
      return false;
    }
    return this.#put(chunk);
  }

  async #put(chunk: Uint8Array): Promise<boolean> {
    if (this.#response.destroyed) return false;
    if (chunk.length === 0) return true;
    this.bytes += chunk.length;
    return this.#response.write(chunk) || (await roomIn(this.#response));
  }

  async flush(): Promise<void> {}

  async end(): Promise<boolean> {
    return this.stopped === undefined && !this.#response.destroyed;
  }

  async close(): Promise<void> {}
}

/** Compresses into a body: one gzip member, or one zstd frame with a checksum. */
export class EncodedSink implements Sink {
  readonly #encoder: Transform & { flush(done: () => void): void };
  readonly #pump: Promise<boolean>;
  #isClosed = false;

  constructor(body: BodySink, encoding: "gzip" | "zstd") {
    const { ZSTD_c_compressionLevel, ZSTD_c_checksumFlag, ZSTD_c_windowLog } = zlib.constants;
    this.#encoder =
      encoding === "gzip"
        ? zlib.createGzip({ level: 1, chunkSize: chunkBytes })
        : zlib.createZstdCompress({
            chunkSize: chunkBytes,
            // the window of stored segments: rows repeat earlier ones nearby
            params: { [ZSTD_c_compressionLevel]: 1, [ZSTD_c_windowLog]: 17, [ZSTD_c_checksumFlag]: 1 },
          });
    this.#pump = this.#pumpInto(body);
  }

  async write(chunk: Uint8Array): Promise<boolean> {
    if (this.#encoder.destroyed) return false;
    if (!this.#encoder.write(chunk)) await Promise.race([once(this.#encoder, "drain"), this.#pump]);
    return !this.#encoder.destroyed;
  }

  async flush(): Promise<void> {
    await Promise.race([new Promise<void>((resolve) => this.#encoder.flush(resolve)), this.#pump]);
    // the pump takes over readable data in the following turns
    do await setImmediate();
    while (this.#encoder.readableLength > 0 && !this.#encoder.destroyed);
    await setImmediate();
  }

  async end(): Promise<boolean> {
    if (!this.#encoder.destroyed) this.#encoder.end();
    return await this.#pump;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#encoder.destroy();
    await this.#pump;
  }

  async #pumpInto(body: BodySink): Promise<boolean> {
    try {
      for await (const chunk of this.#encoder) if (!(await body.write(chunk as Uint8Array))) return false;
      return await body.end();
    } catch (error) {
      // closing an unfinished encoder looks like a stream error; any other error is real
      if (this.#isClosed) return false;
      throw error;
    }
  }
}

const chunkBytes = 256 * 1024;
