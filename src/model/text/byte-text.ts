/** Bytes in the largest decimal unit that leaves a number above one. */
export function byteText(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB", "PB", "EB", "ZB"];
  const step = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, bytes)) / 3)));
  return step === 0 ? `${bytes} B` : `${(bytes / 1000 ** step).toFixed(1)} ${units[step]}`;
}
