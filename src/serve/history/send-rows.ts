import type { ServerResponse } from "node:http";
import { setImmediate } from "node:timers/promises";
import { RunvaultError } from "../../model/error.ts";
import { countLines } from "../../row/wire/row-lines.ts";
import { BodySink, EncodedSink, type RowEncoding, roomIn, type Sink } from "../http/body-sink.ts";
import type { ByteStop, Ending, RowStop } from "../wire-hook.ts";

export interface SendOptions {
  readonly encoding: RowEncoding;
  /**
   * Rows in the chunks so far, if the source knows; true counts them, which reads every byte; with false `rows` is 0.
   */
  readonly countRows: boolean | (() => number);
  readonly rowStops: readonly RowStop[];
  readonly byteStops: readonly ByteStop[];
}

/** What was sent; `finishAnswer` then ends the answer. */
export interface Sent {
  readonly rows: number;
  /** Bytes of the body as sent, after compression. */
  readonly bytes: number;
  readonly ending: Ending;
  /** Why the source failed. */
  readonly error?: RunvaultError;
}

/**
 * Sends an answer's chunks at the client's pace, without looking at lines unless rows are counted. The head is sent
 * with the first chunk. Always ends the iteration. An error of the source ends in `cut`, so that no client takes the
 * answer for complete; it throws only errors of ending the iteration.
 */
export async function sendRows(
  response: ServerResponse,
  chunks: AsyncIterator<Uint8Array>,
  first: IteratorResult<Uint8Array>,
  options: SendOptions,
): Promise<Sent> {
  const body = new BodySink(response, options.byteStops);
  const sink: Sink = options.encoding === "identity" ? body : new EncodedSink(body, options.encoding);
  const stops = [...options.rowStops].sort((a, b) => a.rows - b.rows);
  const { countRows } = options;
  const isCounting = countRows === true || stops.length > 0;
  let rows = 0;
  const sent = (ending: Ending, error?: RunvaultError): Sent => ({
    rows,
    bytes: body.bytes,
    ending,
    ...(error === undefined ? {} : { error }),
  });
  /** Performs the stop; one that looks complete still ends its compressed frame. */
  const stopAt = async (ending: Ending): Promise<Sent> => {
    if (ending === "whole") await sink.end();
    else await sink.flush();
    return sent(body.stopped ?? ending);
  };
  try {
    if (!(await body.write(nothing))) return sent(body.stopped ?? "left");
    for (; stops[0]?.rows === 0; stops.shift()) if (stops[0].hit()) return await stopAt(stops[0].ending);
    for (let next = first; next.done !== true; next = await chunks.next()) {
      const chunk = next.value;
      if (isCounting) {
        const counted = countLines(chunk);
        for (let stop = stops[0]; stop !== undefined && stop.rows <= rows + counted; stop = stops[0]) {
          stops.shift();
          if (!stop.hit()) continue;
          const end = endOfLine(chunk, stop.rows - rows);
          rows = stop.rows;
          await sink.write(chunk.subarray(0, end));
          return await stopAt(stop.ending);
        }
        rows += counted;
      }
      if (!(await sink.write(chunk))) return sent(body.stopped ?? "left");
      if (!isCounting && typeof countRows === "function") rows = countRows();
    }
    if (!(await sink.end())) return sent(body.stopped ?? "left");
    return sent("whole");
  } catch (error) {
    return sent(response.destroyed ? "left" : "cut", RunvaultError.from(error));
  } finally {
    await sink.close();
    await chunks.return?.();
  }
}

/** Ends the answer. Data before a cut reaches the kernel first. Resolves when the answer is over. */
export async function finishAnswer(response: ServerResponse, ending: Ending): Promise<void> {
  switch (ending) {
    case "whole":
      response.end();
      return;
    case "cut":
      response.flushHeaders();
      do await setImmediate();
      while (response.writableLength > 0 && !response.destroyed && (await roomIn(response)));
      response.destroy();
      return;
    case "stalled":
      response.flushHeaders();
      if (!response.destroyed) await new Promise((resolve) => response.once("close", resolve));
      return;
    case "left":
      response.destroy();
  }
}

const nothing = new Uint8Array(0);
const newline = 10;

/** Offset after the nth line end. */
function endOfLine(chunk: Uint8Array, nth: number): number {
  let at = -1;
  for (let line = 0; line < nth; line += 1) at = chunk.indexOf(newline, at + 1);
  return at + 1;
}
