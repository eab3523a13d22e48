/** Decides who may fetch: so many at a time, by priority and then order of arrival. */
export interface SliceQueue {
  readonly concurrency: number;
  add<T>(turn: () => Promise<T>, options?: { readonly priority?: number }): Promise<T>;
}
