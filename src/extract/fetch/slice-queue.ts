/** Limits how many fetches run at a time; order by priority, then by arrival. */
export interface SliceQueue {
  readonly concurrency: number;
  add<T>(turn: () => Promise<T>, options?: { readonly priority?: number }): Promise<T>;
}
