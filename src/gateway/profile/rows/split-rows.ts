import { lineTooLong, longestLineBytes } from "../../../row/line.ts";

/** Bytes of text processed in one turn of the event loop. */
const pieceBytes = 64 * 1024;

/** Turns arbitrary chunks into pieces of whole lines; the last may lack its line end. Throws `line_too_long`. */
export async function* splitRows(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer, void> {
  let pending: Buffer[] = [];
  let pendingBytes = 0;
  for await (const whole of chunks) {
    for (let start = 0; start < whole.byteLength; start += pieceBytes) {
      const piece = Buffer.from(whole.buffer, whole.byteOffset, whole.byteLength).subarray(
        start,
        start + pieceBytes,
      );
      const end = piece.lastIndexOf(0x0a) + 1;
      if (end > 0) {
        yield Buffer.concat([...pending, piece.subarray(0, end)]);
        pending = [];
        pendingBytes = 0;
      }
      if (end === piece.byteLength) continue;
      pending.push(Buffer.from(piece.subarray(end)));
      pendingBytes += piece.byteLength - end;
      if (pendingBytes > longestLineBytes) {
        throw lineTooLong("line");
      }
    }
  }
  if (pendingBytes > 0) yield Buffer.concat(pending);
}
