import { Readable } from "node:stream";
import { createGunzip, createZstdDecompress } from "node:zlib";
import { type ErrorPlace, RunvaultError } from "../../model/error.ts";
import type { Answer, AnswerBody } from "./answer.ts";
import { transportError } from "./transport-error.ts";

// each small output costs a call: with the default of 16 KiB, a zstd body takes six times as long
const outputChunkBytes = 1024 * 1024;

const decoders = {
  zstd: () => createZstdDecompress({ chunkSize: outputChunkBytes }),
  gzip: () => createGunzip({ chunkSize: outputChunkBytes }),
};

type Coding = keyof typeof decoders;

/** Whether the coding marks its own end, so that a truncation shows even if HTTP does not frame the body. */
export function isSelfEnding(answer: Answer): boolean {
  return codingOf(answer) !== undefined;
}

/**
 * An answer's bytes without its Content-Encoding. Ends only if the body and its compressed stream both reached their
 * ends. Throws `stream_cut` or `timeout` for less, and `malformed_row` if it cannot be decoded or has data after its
 * end: then none of the answer can be trusted. Closes the body when the reader leaves.
 */
export async function* decodedBody(answer: Answer, place: ErrorPlace): AsyncGenerator<Buffer, undefined> {
  const coding = codingOf(answer);
  const { body } = answer;
  try {
    if (coding === undefined) {
      const encoding = answer.headers["content-encoding"];
      if (!isPlain(encoding)) throw unknownCoding(answer, place);
      for (let step = await body.next(); !step.done; step = await body.next()) yield step.value;
    } else {
      yield* decompressed(body, coding, place);
    }
  } catch (thrown) {
    throw transportError(thrown, { place, receivedBytes: body.receivedBytes });
  } finally {
    body.close();
  }
}

async function* decompressed(body: AnswerBody, coding: Coding, place: ErrorPlace): AsyncGenerator<Buffer> {
  const decoder = decoders[coding]();
  const source = Readable.from(body, { objectMode: false, highWaterMark: 256 * 1024 });
  source.on("error", (error) => decoder.destroy(error));
  source.pipe(decoder);
  try {
    yield* decoder as AsyncIterable<Buffer>;
  } catch (thrown) {
    throw decodeError(thrown, coding, body.receivedBytes, place);
  } finally {
    source.destroy();
    decoder.destroy();
  }
  // Node silently ends a zstd stream after its first frame, and ignores data after a gzip member. Such an early end
  // shows because more bytes were available than it took.
  if (decoder.bytesWritten !== body.receivedBytes) {
    throw new RunvaultError("malformed_row", `the ${coding} body is followed by further data`, {
      place,
      hint: "The gateway or a proxy sends several frames or trailing bytes: set --no-compression or RUNVAULT_NO_COMPRESSION.",
    });
  }
}

function decodeError(thrown: unknown, coding: Coding, bytes: number, place: ErrorPlace): unknown {
  const code = (thrown as NodeJS.ErrnoException).code ?? "";
  if (code === "Z_BUF_ERROR") {
    const message = `the ${coding} body broke off after ${bytes} bytes`;
    return new RunvaultError("stream_cut", message, { cause: thrown, place });
  }
  if (code.startsWith("Z_") || code.startsWith("ZSTD_")) {
    return new RunvaultError("malformed_row", `the ${coding} body cannot be decompressed (${code})`, {
      cause: thrown,
      place,
      hint: "Nothing from this answer was used: run the same command again, or set --no-compression or RUNVAULT_NO_COMPRESSION.",
    });
  }
  return thrown;
}

function codingOf({ headers }: Answer): Coding | undefined {
  switch (headers["content-encoding"]?.trim().toLowerCase()) {
    case "zstd":
      return "zstd";
    case "gzip":
    case "x-gzip":
      return "gzip";
    default:
      return undefined;
  }
}

function isPlain(encoding: string | undefined): boolean {
  return encoding === undefined || ["", "identity"].includes(encoding.trim().toLowerCase());
}

/** What to do about an answer in a compression that was not requested. */
export const compressOnceHint =
  "Ask the operator of the gateway, or of the proxy in front of it, to compress answers only once and to say so in Content-Encoding; until then, --no-compression or RUNVAULT_NO_COMPRESSION may help.";

function unknownCoding({ status }: Answer, place: ErrorPlace): RunvaultError {
  return new RunvaultError(
    "not_a_gateway",
    "the answer has an unknown Content-Encoding that was not asked for",
    { place, status, hint: compressOnceHint },
  );
}
