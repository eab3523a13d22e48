import type { Nanoseconds, TimeBounds } from "../model/time.ts";
import { floorDivide, nsPerSecond } from "../model/time.ts";

/** The fixed UTC period that one Parquet file covers; decided once per run and table. */
export const grains = ["all", "year", "month", "day", "hour"] as const;
export type Grain = (typeof grains)[number];

export interface Bucket extends TimeBounds {
  /** `all`, `2022`, `2022-01`, `2022-01-31` or `2022-01-31T05`. */
  readonly name: string;
}

/** Whether a bucket may have this name, which is also the name of its file in `tables/`. */
export function isBucketName(name: string): boolean {
  return /^(?:all|\d{4}(?:-\d\d(?:-\d\d(?:T\d\d)?)?)?)$/.test(name);
}

const mostRows = 8_000_000;

const grainNs: Record<Grain, bigint> = {
  all: 0n,
  year: 31_557_600n * nsPerSecond,
  month: 2_629_800n * nsPerSecond,
  day: 86_400n * nsPerSecond,
  hour: 3_600n * nsPerSecond,
};

/**
 * The coarsest grain whose buckets stay at or under 8 million rows at the table's average density. A table that still
 * grows never gets `all`, because every append would rewrite it whole.
 */
export function chooseGrain(table: {
  rows: number;
  first: Nanoseconds;
  last: Nanoseconds;
  final: boolean;
}): Grain {
  const spanNs = table.last - table.first + 1n;
  const perBucket = (grain: Grain) =>
    grain === "all" || grainNs[grain] >= spanNs
      ? table.rows
      : Number((BigInt(table.rows) * grainNs[grain]) / spanNs);
  return grains.find((grain) => (table.final || grain !== "all") && perBucket(grain) <= mostRows) ?? "hour";
}

/** The bucket that a timestamp falls into. */
export function bucketAt(grain: Grain, ts: Nanoseconds): Bucket {
  if (grain === "all") return { name: "all", from: undefined, to: undefined };
  const date = new Date(Number(floorDivide(ts, nsPerSecond)) * 1000);
  const [year, month, day, hour] = [
    date.getUTCFullYear(),
    date.getUTCMonth(),
    date.getUTCDate(),
    date.getUTCHours(),
  ];
  const iso = new Date(Date.UTC(year, month, day, hour)).toISOString();
  switch (grain) {
    case "year":
      return bucket(iso.slice(0, 4), Date.UTC(year), Date.UTC(year + 1));
    case "month":
      return bucket(iso.slice(0, 7), Date.UTC(year, month), Date.UTC(year, month + 1));
    case "day":
      return bucket(iso.slice(0, 10), Date.UTC(year, month, day), Date.UTC(year, month, day + 1));
    case "hour":
      return bucket(iso.slice(0, 13), Date.UTC(year, month, day, hour), Date.UTC(year, month, day, hour + 1));
  }
}

function bucket(name: string, fromMs: number, toMs: number): Bucket {
  return { name, from: BigInt(fromMs) * 1_000_000n, to: BigInt(toMs) * 1_000_000n };
}
