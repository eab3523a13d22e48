import { describe, expect, test } from "vitest";
import type { MatchedColumns } from "../../../src/analytics/against/fill-index.ts";
import {
  isNear,
  type MatchLimits,
  matchFills,
  noMatches,
} from "../../../src/analytics/against/match-fills.ts";
import { exactOf } from "../../../src/analytics/instruments/instrument.ts";

interface Fill {
  readonly ts: bigint;
  readonly seq: bigint;
  readonly price: bigint;
  readonly quantity: bigint;
  readonly fee: bigint;
  readonly group: number;
}

const groups = 3;

function columnsOf(fills: readonly Fill[]): MatchedColumns {
  const column = (name: "ts" | "price" | "quantity" | "fee") =>
    BigInt64Array.from(fills, (fill) => fill[name]);
  return {
    count: fills.length,
    seq: BigUint64Array.from(fills, ({ seq }) => seq),
    ts: column("ts"),
    price: column("price"),
    quantity: column("quantity"),
    fee: column("fee"),
  };
}

/** Pairs of seqs, in the order of those here. */
function matched(here: readonly Fill[], there: readonly Fill[], limits: MatchLimits): string[] {
  const [a, b] = [columnsOf(here), columnsOf(there)];
  const matches = noMatches(a, b);
  const own = Int32Array.from(here, ({ group }) => group);
  const other = Int32Array.from(there, ({ group }) => group);
  matchFills(a, b, { here: own, there: other, count: groups }, limits, matches);
  for (const [fill, match] of matches.here.entries()) if (match >= 0) expect(matches.there[match]).toBe(fill);
  return [...matches.here]
    .flatMap((match, fill) => (match < 0 ? [] : [`${here[fill]!.seq}-${there[match]!.seq}`]))
    .sort();
}

/** The definition: of all pairs left, the nearest, again and again. */
function byDefinition(here: readonly Fill[], there: readonly Fill[], { withinNs, priceWithin }: MatchLimits) {
  const away = (a: bigint, b: bigint) => (a < b ? b - a : a - b);
  const pairs = here.flatMap((a) =>
    there
      .filter((b) => a.group === b.group)
      .filter((b) => withinNs === null || away(a.ts, b.ts) <= withinNs)
      .filter((b) => priceWithin === null || isNear(a.price, b.price, priceWithin))
      .map((b) => ({
        key: [
          ...(["ts", "price", "quantity", "fee"] as const).map((name) => away(a[name], b[name])),
          a.seq,
          b.seq,
        ],
        a,
        b,
      })),
  );
  pairs.sort((p, q) => {
    const at = p.key.findIndex((value, index) => value !== q.key[index]);
    return at < 0 ? 0 : p.key[at]! < q.key[at]! ? -1 : 1;
  });
  const taken = new Set<Fill>();
  return pairs
    .flatMap(({ a, b }) => {
      if (taken.has(a) || taken.has(b)) return [];
      taken.add(a).add(b);
      return [`${a.seq}-${b.seq}`];
    })
    .sort();
}

/** Small numbers, so that ties of every kind come up. */
function random(seed: number): () => number {
  let state = seed * 2654435761;
  return () => {
    state = (Math.imul(state ^ (state >>> 15), 2246822519) + 0x9e3779b9) >>> 0;
    return ((state ^ (state >>> 13)) >>> 0) / 2 ** 32;
  };
}

function fillsOf(next: () => number, count: number, span: number): Fill[] {
  const upTo = (most: number) => BigInt(Math.floor(next() * most));
  const fills = Array.from({ length: count }, (_, seq) => ({
    ts: upTo(span),
    seq: BigInt(seq + 1),
    price: 10_000n + upTo(6),
    quantity: upTo(3),
    fee: upTo(2),
    group: Number(upTo(groups)),
  }));
  return fills.sort((a, b) => Number(a.ts - b.ts));
}

const cases = Array.from({ length: 60 }, (_, seed) => seed);
const limitsOf = (seed: number): MatchLimits => ({
  withinNs: seed % 3 === 0 ? null : BigInt(seed % 7),
  priceWithin: seed % 2 === 0 ? null : exactOf(["1", "2.5", "0"][seed % 3]!),
});

describe("fills matched by nearness", () => {
  test.each(cases)("are the pairs that taking the nearest of all again and again gives: %i", (seed) => {
    const next = random(seed + 1);
    const [here, there] = [fillsOf(next, 40, 5 + seed), fillsOf(next, 45, 5 + seed)];
    const limits = limitsOf(seed);
    const found = matched(here, there, limits);
    expect(found).toEqual(byDefinition(here, there, limits));
    expect(found.length).toBeGreaterThan(0);
  });

  test.each(cases.slice(0, 20))("are the same whatever the order of the rows: %i", (seed) => {
    const next = random(seed + 100);
    const [here, there] = [fillsOf(next, 60, 20), fillsOf(next, 60, 20)];
    const shuffled = (fills: readonly Fill[]) =>
      fills
        .map((fill) => ({ fill, at: next() }))
        .sort((a, b) => a.at - b.at)
        .map(({ fill }) => fill);
    expect(matched(shuffled(here), shuffled(there), limitsOf(seed))).toEqual(
      matched(here, there, limitsOf(seed)),
    );
  });

  test.each(cases.slice(0, 10))("are the same pairs from the other side but for ties: %i", (seed) => {
    const next = random(seed + 200);
    const spread = (fills: readonly Fill[]) =>
      fills.map((fill, place) => ({ ...fill, ts: fill.ts * 1000n + BigInt(place * place) }));
    const [here, there] = [spread(fillsOf(next, 30, 10)), spread(fillsOf(next, 30, 10))];
    const back = matched(there, here, limitsOf(seed)).map((pair) => pair.split("-").reverse().join("-"));
    expect(back.sort()).toEqual(matched(here, there, limitsOf(seed)));
  });

  test("of a run with itself are every fill with itself", () => {
    const fills = fillsOf(random(7), 200, 30);
    const found = matched(fills, fills, { withinNs: 0n, priceWithin: null });
    expect(found.length).toBe(fills.length);
    expect(found.filter((pair) => new Set(pair.split("-")).size > 1 && !isTwin(fills, pair))).toEqual([]);
  });

  test("take seconds, not hours, of many fills in one window that are all out of reach in price", () => {
    const count = 100_000;
    const run = (price: bigint) =>
      Array.from({ length: count }, (_, seq) => ({
        ts: BigInt(seq),
        seq: BigInt(seq + 1),
        price: price + BigInt(seq % 5),
        quantity: 1n,
        fee: 0n,
        group: 0,
      }));
    const began = process.cpuUsage().user;
    expect(matched(run(10_000n), run(10_100n), { withinNs: null, priceWithin: exactOf("50") })).toEqual([]);
    expect(process.cpuUsage().user - began).toBeLessThan(10_000_000);
  });

  test("take seconds, not hours, where prices out of reach lie above and below, and few fills in the window", () => {
    const run = (priceOf: (seq: number) => bigint) =>
      Array.from({ length: 40_000 }, (_, seq) => ({
        ts: BigInt(seq) * 10n,
        seq: BigInt(seq + 1),
        price: priceOf(seq),
        quantity: 1n,
        fee: 0n,
        group: 0,
      }));
    const [here, there] = [run(() => 10_000n), run((seq) => (seq % 2 === 0 ? 9_900n : 10_100n))];
    const began = process.cpuUsage().user;
    expect(matched(here, there, { withinNs: 50n, priceWithin: exactOf("50") })).toEqual([]);
    expect(process.cpuUsage().user - began).toBeLessThan(5_000_000);
  });
});

/** Whether two seqs are of fills that are equal in all else. */
function isTwin(fills: readonly Fill[], pair: string): boolean {
  const [a, b] = pair.split("-").map((seq) => fills.find((fill) => fill.seq === BigInt(seq))!) as [
    Fill,
    Fill,
  ];
  return (["ts", "price", "quantity", "fee", "group"] as const).every((name) => a[name] === b[name]);
}
