/** Digits that a decimal may get by writing its exponent out: no column holds a tenth of them. */
const mostZeros = 400;

const decimal = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([-+]?\d+))?$/;

/**
 * A decimal times ten to the `shift`, exactly, in canonical spelling: no exponent, no zeros at either end, no sign on a
 * zero. Undefined where the text is no decimal; null where its exponent is beyond all use.
 */
export function exactDecimal(text: string, shift = 0): string | undefined | null {
  const match = decimal.exec(text);
  if (match === null) return undefined;
  const [, sign = "", whole = "", fraction = "", exponent = "0"] = match;
  const all = whole + fraction;
  let first = 0;
  while (all[first] === "0") first++;
  if (first === all.length) return "0";
  let end = all.length;
  while (all[end - 1] === "0") end--;
  const digits = all.slice(first, end);
  // how many of the digits stand ahead of the point
  const point = whole.length + Number(exponent) + shift - first;
  if (point - digits.length > mostZeros || point < -mostZeros) return null;
  if (point <= 0) return `${sign}0.${"0".repeat(-point)}${digits}`;
  if (point >= digits.length) return sign + digits.padEnd(point, "0");
  return `${sign}${digits.slice(0, point)}.${digits.slice(point)}`;
}
