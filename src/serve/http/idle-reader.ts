import type { ServerResponse } from "node:http";
import { RunvaultError } from "../../model/error.ts";

const dropped = new WeakMap<ServerResponse, RunvaultError>();

/** Why an answer was dropped; undefined if it was not. */
export function idleDrop(response: ServerResponse): RunvaultError | undefined {
  return dropped.get(response);
}

/**
 * Drops an answer whose reader takes no byte for `idleMs`, and records that. A slow reader keeps its answer, and so
 * does one that waits for a slow source. Works until the answer is over, also when all of it is written and waits to be
 * sent.
 *
 * Uses Node's socket timer: while bytes wait, it fires only if none were sent since its last check. Set for a whole
 * server (`server.timeout`), it would also end answers with a slow source.
 */
export function dropIdleReader(
  response: ServerResponse,
  idleMs: number,
  onDrop: (error: RunvaultError) => void,
): void {
  response.setTimeout(idleMs, () => {
    // with nothing to send the reader is not to blame; the next byte restarts the timer
    if (response.destroyed || response.writableLength === 0) return;
    const seconds = Math.ceil(idleMs / 1000);
    const error = new RunvaultError("timeout", `the client read nothing for ${seconds} s`);
    dropped.set(response, error);
    response.destroy();
    onDrop(error);
  });
}
