/** Whose turn it is to fetch: so many at a time, of those that wait the first of the highest priority. */
export interface SliceQueue {
  readonly concurrency: number;
  add<T>(turn: () => Promise<T>, options?: { readonly priority?: number }): Promise<T>;
}
