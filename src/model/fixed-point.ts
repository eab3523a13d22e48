/** The canonical decimal text of `scaled / 10^decimals`: no exponent, no trailing zeros, no minus on zero. */
export function formatScaled(scaled: bigint | number, decimals: number): string {
  if (decimals === 0) return String(scaled);
  const text = String(scaled);
  const negative = text.charCodeAt(0) === 45;
  const digits = (negative ? text.slice(1) : text).padStart(decimals + 1, "0");
  const point = digits.length - decimals;
  let end = digits.length;
  while (end > point && digits.charCodeAt(end - 1) === 48) end -= 1;
  const magnitude =
    end === point ? digits.slice(0, point) : `${digits.slice(0, point)}.${digits.slice(point, end)}`;
  return negative ? `-${magnitude}` : magnitude;
}

/** `numerator / denominator` as an integer, ties to the even neighbour; the denominator is positive. */
export function divideHalfEven(numerator: bigint, denominator: bigint): bigint {
  const magnitude = numerator < 0n ? -numerator : numerator;
  let quotient = magnitude / denominator;
  const twice = (magnitude - quotient * denominator) * 2n;
  if (twice > denominator || (twice === denominator && (quotient & 1n) === 1n)) quotient += 1n;
  return numerator < 0n ? -quotient : quotient;
}

/** The square root by Newton's iteration, using only + and ÷; NaN below zero. */
export function squareRoot(value: number): number {
  if (!(value > 0)) return value === 0 ? 0 : Number.NaN;
  let root = value > 1 ? value : 1;
  for (;;) {
    const better = (root + value / root) / 2;
    // from above, the iteration decreases until rounding stops it
    if (better >= root) return root;
    root = better;
  }
}
