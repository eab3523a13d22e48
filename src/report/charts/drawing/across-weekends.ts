/** A weekend with two holidays. */
const longestMs = 4 * 86_400_000;

/**
 * A line without its gaps while markets are closed, when nothing varies and a ratio has no value. Longer gaps remain.
 * @param times rising, UNIX milliseconds, as many as values
 */
export function acrossWeekends(
  times: Float64Array,
  values: Float64Array,
): { readonly times: Float64Array; readonly values: Float64Array } {
  const isKept = Array.from(values, (value) => !Number.isNaN(value));
  let before = -1;
  for (let index = 0; index < values.length; index++) {
    if (!isKept[index]) continue;
    if (before >= 0 && times[index]! - times[before]! > longestMs) isKept.fill(true, before, index);
    before = index;
  }
  const kept = (_: number, index: number) => isKept[index]!;
  return { times: times.filter(kept), values: values.filter(kept) };
}
