/** A macro's error about unclear rows, recognized by its word `unclear`; null for any other error. */
export function unclearFault(error: unknown): string | null {
  const message = error instanceof Error ? error.message : "";
  return /^Invalid Input Error: unclear: (.*)$/s.exec(message)?.[1] ?? null;
}
