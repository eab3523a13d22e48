import type { BookFaultKind } from "./book-fault.ts";

/** Where a fault breaks the books of a run. */
export interface BookBreak {
  /** Asked at each place where a fault of that kind could be, in the run's order; true at the one where it is. */
  at(kind: BookFaultKind): boolean;
}

/** Books without a fault. */
export const soundBooks: BookBreak = { at: () => false };

/** Books with a fault of a kind at its so-many-th place, counted from 1. */
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

/** Sound books that count the places where a fault of a kind could be. */
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
