/** The most zeros that writing out an exponent may add, more than ten times what any column can hold. */
const mostZeros = 400;

const decimal = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([-+]?\d+))?$/;

/**
 * A decimal times ten to the `shift`, exact and in canonical spelling: no exponent, no zeros at either end, no sign on
 * zero. Undefined if the text is not a decimal; null if its exponent is absurd.
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
  // the number of digits before the point
  const point = whole.length + Number(exponent) + shift - first;
  if (point - digits.length > mostZeros || point < -mostZeros) return null;
  if (point <= 0) return `${sign}0.${"0".repeat(-point)}${digits}`;
  if (point >= digits.length) return sign + digits.padEnd(point, "0");
  return `${sign}${digits.slice(0, point)}.${digits.slice(point)}`;
}
