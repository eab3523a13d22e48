/** The four digits of 0 to 9999, as little-endian words of ASCII. */
const fourDigits = Int32Array.from({ length: 10_000 }, (_, n) =>
  Buffer.from(String(n).padStart(4, "0")).readInt32LE(),
);

/**
 * Writes the decimal digits of an unsigned 64-bit integer, given as two 32-bit halves, and returns where they end.
 * Avoids bigint, which is an object, because every row has two such fields. Writes at most 24 bytes.
 */
export function writeUint64(out: DataView, at: number, high: number, low: number): number {
  const high32 = high >>> 0;
  const low32 = low >>> 0;
  // below 2^53 one double holds it
  if (high32 < 0x20_0000) return writeUint53(out, at, high32 * 0x1_0000_0000 + low32);
  // long division by 10^9 in steps of 16 bits: every intermediate value stays below 2^53
  const first = Math.floor(high32 / 1e9);
  let step = (high32 - first * 1e9) * 0x1_0000 + (low32 >>> 16);
  const second = Math.floor(step / 1e9);
  step = (step - second * 1e9) * 0x1_0000 + (low32 & 0xffff);
  const third = Math.floor(step / 1e9);
  const rest = step - third * 1e9;
  let end = writeUint53(out, at, first * 0x1_0000_0000 + second * 0x1_0000 + third);
  const upper = Math.floor(rest / 1e8);
  const lower = rest - upper * 1e8;
  const middle = Math.floor(lower / 1e4);
  out.setUint8(end, 48 + upper);
  out.setInt32(end + 1, fourDigits[middle]!, true);
  out.setInt32(end + 5, fourDigits[lower - middle * 1e4]!, true);
  end += 9;
  return end;
}

/** The same for a signed integer. Writes at most 25 bytes. */
export function writeInt64(out: DataView, at: number, high: number, low: number): number {
  if (high >= 0) return writeUint64(out, at, high, low);
  out.setUint8(at, 45);
  const low32 = -low >>> 0;
  // two's complement: the low half's carry is added to the high half
  return writeUint64(out, at + 1, low32 === 0 ? -high : ~high, low32);
}

/** Writes the digits of a whole number below 2^53 and returns where they end. */
export function writeUint53(out: DataView, at: number, value: number): number {
  if (value < 1e4) {
    // shifts out the word's leading zeros, because its first digit is its lowest byte
    const length = value < 10 ? 1 : value < 100 ? 2 : value < 1000 ? 3 : 4;
    out.setInt32(at, fourDigits[value]! >> ((4 - length) * 8), true);
    return at + length;
  }
  const upper = Math.floor(value / 1e4);
  const end = writeUint53(out, at, upper);
  out.setInt32(end, fourDigits[value - upper * 1e4]!, true);
  return end + 4;
}

const fractions = 1e8;

/**
 * Writes a double as ECMAScript prints it if it has at most eight digits after the point and fifteen in all, and
 * returns where it ends; -1 for any other. Different decimals of fifteen digits are different doubles, so the result is
 * the shortest. Writes at most 24 bytes.
 */
export function writeShortDouble(out: DataView, at: number, value: number): number {
  const scaled = Math.round(value * fractions);
  const size = Math.abs(scaled);
  if (!(size < 1e15) || scaled / fractions !== value) return -1;
  // a zero may have a sign, and numbers below a millionth have an exponent
  if (size < 100 && (size > 0 || Object.is(value, -0))) return -1;
  if (scaled < 0) out.setUint8(at++, 45);
  const whole = Math.floor(size / fractions);
  let end = writeUint53(out, at, whole);
  const part = size - whole * fractions;
  if (part === 0) return end;
  const upper = Math.floor(part / 1e4);
  out.setUint8(end, 46);
  out.setInt32(end + 1, fourDigits[upper]!, true);
  out.setInt32(end + 5, fourDigits[part - upper * 1e4]!, true);
  end += 9;
  while (out.getUint8(end - 1) === 48) end--;
  return end;
}
