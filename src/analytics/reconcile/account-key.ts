/** One series of equity points. */
export interface AccountKey {
  readonly account: string;
  readonly portfolio: string;
  readonly currency: string;
}
