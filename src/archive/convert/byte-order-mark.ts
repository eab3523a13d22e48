import { createZstdDecompress } from "node:zlib";
import { openRegularFile } from "../storage/archive-file.ts";
import { frameLimits } from "../write/segment.ts";

/** Whether the text of a zstd file begins with a UTF-8 byte order mark, which DuckDB would drop silently. */
export async function startsWithByteOrderMark(file: string): Promise<boolean> {
  const { handle } = await openRegularFile(file, Number.MAX_SAFE_INTEGER);
  const source = handle.createReadStream({ highWaterMark: 4096 });
  const text = source.pipe(createZstdDecompress({ chunkSize: 256 * 1024, params: frameLimits }));
  // pipe does not forward errors: a missing file would otherwise raise an uncaught one
  source.on("error", (error) => text.destroy(error));
  try {
    for await (const chunk of text) {
      const bytes = chunk as Buffer;
      if (bytes.length > 0)
        return bytes.length >= 3 && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
    }
    return false;
  } finally {
    source.destroy();
    text.destroy();
  }
}
