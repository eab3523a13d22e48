/**
 * Compares texts in natural order: digits by their number, T9 before T10, everything else by code units. Texts that
 * differ only in leading zeros are ordered by code units.
 */
export function naturalOrder(a: string, b: string): number {
  const [left, right] = [partsOf(a), partsOf(b)];
  for (let i = 0; i < left.length && i < right.length; i++) {
    const order = orderOf(left[i]!, right[i]!);
    if (order !== 0) return order;
  }
  return left.length - right.length || codeUnits(a, b);
}

function partsOf(text: string): readonly string[] {
  return text.match(/\d+|\D+/g) ?? [];
}

function orderOf(a: string, b: string): number {
  if (!/^\d/.test(a) || !/^\d/.test(b)) return codeUnits(a, b);
  const [left, right] = [a.replace(/^0+/, ""), b.replace(/^0+/, "")];
  return left.length - right.length || codeUnits(left, right);
}

function codeUnits(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
