const unitMs: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 7 * 86_400_000,
};

/** A time span with its unit, such as `500ms`, `2m` or `7d`, in milliseconds; NaN for any other text. */
export function millisecondsOf(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|min|h|d|w)$/.exec(text);
  return match === null ? Number.NaN : Math.round(Number(match[1]) * unitMs[match[2]!]!);
}

/** `512MB`, `2GB` (powers of 1024) in mebibytes, at least 1; NaN for any other text. */
export function mebibytesOf(text: string): number {
  const match = /^(\d+)(M|G)i?B?$/i.exec(text);
  const size = match === null ? 0 : Number(match[1]) * (match[2]!.toUpperCase() === "G" ? 1024 : 1);
  return size >= 1 && Number.isSafeInteger(size) ? size : Number.NaN;
}

/** `500B`, `64KB`, `2MB` (powers of 1024) in bytes a second, at least 1; NaN for any other text. */
export function bytesPerSecondOf(text: string): number {
  const match = /^(\d+)(B|Ki?B?|Mi?B?)(?:\/s)?$/i.exec(text);
  const unit = { B: 1, K: 1024, M: 1024 ** 2 }[match?.[2]?.[0]?.toUpperCase() ?? ""] ?? 0;
  const rate = Number(match?.[1] ?? 0) * unit;
  return rate >= 1 && Number.isSafeInteger(rate) ? rate : Number.NaN;
}
