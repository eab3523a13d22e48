/** Units in which sources give times, coarsest first: seconds, milliseconds and microseconds, in nanoseconds. */
const units = [1_000_000_000n, 1_000_000n, 1_000n];

/**
 * Whether two times are the same beginning, one of them cut off or rounded to a coarser unit: an upgrade may change the
 * unit in which a source gives a run's times.
 */
export function isSameBeginning(one: bigint, other: bigint): boolean {
  if (one === other) return true;
  return [one, other].some((coarse) => {
    const unit = units.find((unit) => coarse % unit === 0n);
    const ahead = (coarse === one ? other : one) - coarse;
    // a time that is a whole number of units was neither cut off nor rounded to it
    return unit !== undefined && ahead % unit !== 0n && ahead < unit && -ahead <= unit / 2n;
  });
}
