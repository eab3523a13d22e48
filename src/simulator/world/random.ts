import { createHash } from "node:crypto";

/** A deterministic source of unsigned 32-bit integers. Integer arithmetic only: the same numbers on every machine. */
export interface Random {
  /** The next number, 0 to 2^32 - 1. */
  next(): number;
  /** A number from 0 to `bound - 1`; `bound` is 1 to 2^32. The small bias does not matter here. */
  below(bound: number): number;
}

/** The generator (sfc32, from PractRand), seeded by a text. */
export function randomFrom(seed: string): Random {
  const digest = createHash("sha256").update(seed).digest();
  let a = digest.readInt32LE(0);
  let b = digest.readInt32LE(4);
  let c = digest.readInt32LE(8);
  let counter = 1;
  const next = (): number => {
    const sum = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return sum >>> 0;
  };
  // the state after seeding is close to the seed; a few rounds spread it
  for (let round = 0; round < 12; round += 1) next();
  return { next, below: (bound) => next() % bound };
}
