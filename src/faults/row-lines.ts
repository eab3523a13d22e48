/**
 * The lines of an NDJSON stream without line ends, as latin1 text, which preserves every byte. A last line without a
 * line end counts, too. Not for hot paths.
 */
export async function* rowLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let rest = "";
  for await (const chunk of chunks) {
    const lines = (
      rest + Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString("latin1")
    ).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
  if (rest !== "") yield rest;
}

/** Lines as chunks of about `chunkBytes`, each line with its end. */
export async function* chunksOfLines(
  lines: AsyncIterable<string>,
  chunkBytes = 256 * 1024,
): AsyncGenerator<Uint8Array> {
  let text = "";
  for await (const line of lines) {
    text += `${line}\n`;
    if (text.length >= chunkBytes) {
      yield Buffer.from(text, "latin1");
      text = "";
    }
  }
  if (text !== "") yield Buffer.from(text, "latin1");
}
