/** Name of the view that has a table's exact columns as doubles. */
export function doublesOf(table: string): string {
  return `${table}_f`;
}
