/** The mean of the last `length` whole numbers, from an exact running sum; NaN until there are that many. */
export function movingAverage(length: number): (value: number) => number {
  const window: number[] = [];
  let sum = 0n;
  let next = 0;
  return (value) => {
    sum += BigInt(value) - BigInt(window[next] ?? 0);
    window[next] = value;
    next = (next + 1) % length;
    return window.length < length ? Number.NaN : Number(sum) / length;
  };
}
