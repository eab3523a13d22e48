import type { ServerResponse } from "node:http";
import { RunvaultError } from "../../model/error.ts";

const dropped = new WeakMap<ServerResponse, RunvaultError>();

/** Why an answer was dropped; undefined where it was not. */
export function idleDrop(response: ServerResponse): RunvaultError | undefined {
  return dropped.get(response);
}

/**
 * Drops an answer whose reader takes not one byte for `idleMs`, and says so. A reader that takes little keeps its
 * answer, and so does one that has nothing to take because the source is slow. It holds until the answer is over, also
 * when all of it is written and waits to be sent.
 *
 * Node's own timer of the socket does the work: while bytes wait, it goes off only where none left since it last looked.
 * Set for a whole server (`server.timeout`) it would end answers whose source is slow, too.
 */
export function dropIdleReader(
  response: ServerResponse,
  idleMs: number,
  onDrop: (error: RunvaultError) => void,
): void {
  response.setTimeout(idleMs, () => {
    // with nothing to send it is not the reader who is slow; the timer starts again with the next byte
    if (response.destroyed || response.writableLength === 0) return;
    const seconds = Math.ceil(idleMs / 1000);
    const error = new RunvaultError("timeout", `the client read nothing for ${seconds} s`);
    dropped.set(response, error);
    response.destroy();
    onDrop(error);
  });
}
