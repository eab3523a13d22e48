import type { BookFaultKind } from "./book-fault.ts";

/** Where a fault breaks the books of a run. */
export interface BookBreak {
  /** Called at each possible place for such a fault, in the run's order; true at the chosen one. */
  at(kind: BookFaultKind): boolean;
}

export const soundBooks: BookBreak = { at: () => false };

/** Books with a fault of this kind at one of its possible places, counted from 1. */
export function brokenBooks(wanted: BookFaultKind, place: number): BookBreak {
  let passed = 0;
  return {
    at(kind) {
      if (kind !== wanted) return false;
      passed += 1;
      return passed === place;
    },
  };
}

/** Sound books that count the possible places for a fault. */
export function countedBooks(wanted: BookFaultKind): BookBreak & { readonly places: number } {
  let places = 0;
  return {
    get places() {
      return places;
    },
    at(kind) {
      if (kind === wanted) places += 1;
      return false;
    },
  };
}
