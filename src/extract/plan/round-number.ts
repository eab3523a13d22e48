/**
 * Whether a list with this many entries may have been cut by a limit: usual limits are 20, 25, 50, 100, 200, 250, 500 and
 * so on, and powers of two from 64 up.
 */
export function isRoundNumber(entries: number): boolean {
  if (entries < 20) return false;
  if (entries >= 64 && Number.isInteger(Math.log2(entries))) return true;
  const lead = entries / 10 ** Math.floor(Math.log10(entries));
  return [1, 2, 2.5, 5].includes(lead);
}
