/** What a macro says of rows that are not clear, by its own word for it (`unclear`); null for any other error. */
export function unclearFault(error: unknown): string | null {
  const message = error instanceof Error ? error.message : "";
  return /^Invalid Input Error: unclear: (.*)$/s.exec(message)?.[1] ?? null;
}
