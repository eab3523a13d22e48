/** Units in which sources tell times, the coarsest first: seconds, milliseconds and microseconds, in nanoseconds. */
const units = [1_000_000_000n, 1_000_000n, 1_000n];

/**
 * Whether two times are one beginning, cut or rounded to the unit of the coarser one: an upgrade may change the unit in
 * which a source tells the same run's times.
 */
export function isSameBeginning(one: bigint, other: bigint): boolean {
  if (one === other) return true;
  return [one, other].some((coarse) => {
    const unit = units.find((unit) => coarse % unit === 0n);
    const ahead = (coarse === one ? other : one) - coarse;
    // a time of whole units itself was neither cut nor rounded to them
    return unit !== undefined && ahead % unit !== 0n && ahead < unit && -ahead <= unit / 2n;
  });
}
