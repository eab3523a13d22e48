import { type ErrorPlace, RunvaultError } from "../../model/error.ts";
import type { Answer } from "./answer.ts";
import { compressOnceHint, decodedBody } from "./decode.ts";

/**
 * Byte sequences that begin answers that are not UTF-8, although their sender took them for text. JSON never begins
 * with them.
 */
const beginnings: readonly (readonly [bytes: readonly number[], what: string])[] = [
  [[0x1f, 0x8b], "gzip"],
  [[0x28, 0xb5, 0x2f, 0xfd], "zstd"],
  [[0xff, 0xfe], "UTF-16"],
  [[0xfe, 0xff], "UTF-16"],
  [[0x7b, 0x00], "UTF-16"],
  [[0x00, 0x7b], "UTF-16"],
  [[0x5b, 0x00], "UTF-16"],
  [[0x00, 0x5b], "UTF-16"],
];
const longest = 4;

/**
 * The bytes of an answer that must be text, as from `decodedBody`. Throws `malformed_row` if they are still compressed,
 * or in another encoding than UTF-8: such lines would look truncated.
 */
export async function* textBody(answer: Answer, place: ErrorPlace): AsyncGenerator<Buffer, undefined> {
  let head: Buffer | undefined = Buffer.alloc(0);
  for await (const chunk of decodedBody(answer, place)) {
    if (head === undefined) {
      yield chunk;
      continue;
    }
    head = head.length === 0 ? chunk : Buffer.concat([head, chunk]);
    if (head.length < longest) continue;
    refuseBinary(head, answer, place);
    yield head;
    head = undefined;
  }
  if (head === undefined || head.length === 0) return undefined;
  refuseBinary(head, answer, place);
  yield head;
}

function refuseBinary(head: Buffer, { headers }: Answer, place: ErrorPlace): void {
  const found = beginnings.find(([bytes]) => bytes.every((byte, at) => head[at] === byte));
  if (found === undefined) return;
  const [bytes, what] = found;
  const shown = bytes.map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
  const coding = headers["content-encoding"];
  if (what === "UTF-16") {
    throw new RunvaultError(
      "malformed_row",
      `the answer begins with the bytes ${shown}: it is UTF-16, not UTF-8`,
      {
        place,
        hint: "Ask the gateway's operator to send UTF-8, the only encoding of JSON.",
      },
    );
  }
  const why =
    coding === undefined
      ? `it is ${what}, but no Content-Encoding says so`
      : `it is still ${what} after its Content-Encoding (${coding}) is decoded`;
  throw new RunvaultError("malformed_row", `the answer begins with the bytes ${shown}: ${why}`, {
    place,
    hint: compressOnceHint,
  });
}
