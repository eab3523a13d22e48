/** What the clock shows while a request is answered; an archive has no clock of its own. */
export type Phase =
  /** Every run has ended: what an archive holds is all there is. */
  | "ended"
  /** Each instance's last run goes on, as it did before it was archived. */
  | "running"
  /** Some time after that, when what was started then runs. */
  | "later";

/**
 * Which of a side's servers is asked: the one for everybody, one that nobody else asks, one that wants tokens, one that
 * was told to stop.
 */
export type Door = "open" | "fresh" | "guarded" | "stopping";

/** A request that every side gets, byte for byte the same. */
export interface DifferentialRequest {
  readonly method: string;
  /** From the origin on, with the query, as it goes over the wire. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | undefined;
  readonly phase: Phase;
  readonly door: Door;
  /** `head` for an answer that has no end of its own. */
  readonly reads: "whole" | "head";
}

export const base = "/api/v1";

export function request(
  method: string,
  path: string,
  more: Partial<Omit<DifferentialRequest, "method" | "path">> = {},
): DifferentialRequest {
  return {
    method,
    path,
    headers: {},
    body: undefined,
    phase: "ended",
    door: "open",
    reads: "whole",
    ...more,
  };
}

export function get(path: string, more: Parameters<typeof request>[2] = {}): DifferentialRequest {
  return request("GET", `${base}${path}`, more);
}

/** The parameters as a query, encoded, in their order. */
export function queryOf(parameters: readonly (readonly [name: string, value: string])[]): string {
  return parameters
    .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
    .join("&");
}

/** The request in a line, for whoever reads a failure. */
export function told({ method, path, headers, phase, door }: DifferentialRequest): string {
  const named = Object.entries(headers).map(([name, value]) => ` ${name}: ${value}`);
  return `${method} ${path}${named.join()}${door === "open" ? "" : ` (${door})`}${phase === "ended" ? "" : ` (${phase})`}`;
}
