/** An integer with its digits in groups of three. */
export function grouped(count: number | bigint): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** A duration in at most two units. */
export function durationText(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

/** How long something took: of a few seconds their tenths, too. */
export function tookText(ms: number): string {
  return ms < 9_950 ? `${Math.max(0.1, ms / 1000).toFixed(1)} s` : durationText(ms);
}
