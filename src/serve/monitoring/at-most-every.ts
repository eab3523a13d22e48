/** Calls `tell` at most once in this period. */
export function atMostEvery(ms: number, tell: () => void): () => void {
  let toldAt = Number.NEGATIVE_INFINITY;
  return () => {
    if (performance.now() - toldAt < ms) return;
    toldAt = performance.now();
    tell();
  };
}
