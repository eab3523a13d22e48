import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { constants, zstdCompress, zstdDecompress } from "node:zlib";
import { RunvaultError } from "../../model/error.ts";
import type { Segment } from "../manifest/manifest.ts";
import { damagedHint } from "../read/whole-files.ts";
import type { Store } from "../storage/store.ts";

const compress = promisify(zstdCompress);
const decompress = promisify(zstdDecompress);

/** Most bytes of text in one segment. The rows of one timestamp are never split, so a segment may be larger. */
export const mostSegmentBytes = 64 * 1024 * 1024;

/**
 * NDJSON text as one zstd frame with content size and checksum. Level 1 keeps up with the network on one core; higher
 * levels save a few percent of space for several times the CPU.
 */
export async function packSegment(text: Uint8Array): Promise<{ frame: Buffer; sha256: string }> {
  const frame = await compress(text, {
    params: {
      [constants.ZSTD_c_compressionLevel]: 1,
      // rows repeat earlier ones nearby: a window that fits the cache is faster, and even compresses better
      [constants.ZSTD_c_windowLog]: 17,
      [constants.ZSTD_c_checksumFlag]: 1,
      [constants.ZSTD_c_contentSizeFlag]: 1,
    },
    pledgedSrcSize: text.byteLength,
    // history rows never need more than a quarter of the text, so the output is one allocation
    chunkSize: Math.max(64 * 1024, text.byteLength >> 2),
  });
  return { frame, sha256: createHash("sha256").update(frame).digest("hex") };
}

/**
 * For decompressing a segment: a frame may declare a window that is allocated before the first byte. Ours have 128 KiB,
 * those of earlier versions up to 512 KiB.
 */
export const frameLimits = { [constants.ZSTD_d_windowLogMax]: 23 };

/** The zstd frame of a stored segment. Throws `archive_damaged` if file or hash are not as committed. */
export async function readFrame(
  store: Store,
  key: string,
  segment: Pick<Segment, "sha256" | "storedBytes">,
): Promise<Buffer> {
  const stored = await readWhole(store, key, segment.storedBytes);
  if (stored.byteLength === segment.storedBytes && sha256Of(stored) === segment.sha256) return stored;
  throw damaged(store.nameOf(key), "its bytes are not those committed");
}

/** The text of a stored segment. Throws `archive_damaged` if file, hash, frame or size are not as committed. */
export async function readSegment(
  store: Store,
  key: string,
  segment: Pick<Segment, "sha256" | "bytes" | "storedBytes">,
): Promise<Buffer> {
  const stored = await readFrame(store, key, segment);
  const file = store.nameOf(key);
  // history rows compress to about a tenth: the stored size limits how large the text may be, and the declared size
  // only how small. One byte more than the text, because zlib allocates another chunk when one is exactly full
  const likely = Math.min(segment.bytes + 1, stored.byteLength * 32, mostText);
  let text: Buffer;
  try {
    text = await decompress(stored, {
      chunkSize: Math.max(64 * 1024, likely),
      maxOutputLength: Math.max(1, Math.min(segment.bytes, mostText)),
      params: frameLimits,
    });
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE") {
      throw damaged(file, "its text does not have the committed size", cause);
    }
    throw damaged(file, "its zstd frame cannot be decompressed", cause);
  }
  if (text.byteLength !== segment.bytes) throw damaged(file, "its text does not have the committed size");
  return text;
}

// a segment stretched by a single timestamp may exceed the usual limit by one line
const mostText = mostSegmentBytes * 2;

/** The largest frame of so much text: incompressible bytes grow slightly. */
const mostFrameBytes = mostText + (mostText >> 7);

async function readWhole(store: Store, key: string, storedBytes: number): Promise<Buffer> {
  const file = store.nameOf(key);
  const bytes = await store.get(key, Math.min(storedBytes, mostFrameBytes)).catch((cause: unknown) => {
    throw RunvaultError.from(cause, { place: { file } });
  });
  if (bytes === null) throw damaged(file, "it is missing");
  return bytes;
}

export function sha256Of(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

function damaged(file: string, what: string, cause?: unknown): RunvaultError {
  return new RunvaultError("archive_damaged", `a segment is damaged: ${what}`, {
    cause,
    place: { file },
    hint: damagedHint,
  });
}
