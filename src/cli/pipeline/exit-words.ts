/** Exit statuses in one to three words. */
const words: ReadonlyMap<number, string> = new Map([
  [0, "ok"],
  [1, "internal error"],
  [2, "wrong usage"],
  [3, "gateway failed"],
  [4, "incomplete"],
  [5, "damaged"],
  [6, "held by another"],
  [7, "disk failed"],
  [8, "deadline"],
  [9, "refused"],
  [130, "interrupted"],
  [143, "stopped"],
]);

/** `ok`, or what went wrong. */
export function exitWords(status: number): string {
  return words.get(status) ?? `exit status ${status}`;
}
