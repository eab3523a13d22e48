import { AsyncLocalStorage } from "node:async_hooks";
import { RunvaultError } from "../../model/error.ts";
import type { Caller } from "./token-list.ts";

/** What is known about a request from its head on. */
export interface RequestScope {
  /** Null until a valid token is shown: only the routes that refuse such a request see it. */
  readonly caller: Caller | null;
  /** Why it is refused from any client; routes that answer all hosts ignore this. */
  readonly refusal: RunvaultError | undefined;
  /** Address that the request came from. */
  readonly client: string;
  /** As `performance.now()` gives it. */
  readonly startedMs: number;
}

/** The current request, available anywhere in the code that answers it. */
export const requestScope = new AsyncLocalStorage<RequestScope>();

/** Whether the current request may see an instance; false without a request. */
export function mayAsk(instanceId: string): boolean {
  return requestScope.getStore()?.caller?.allows(instanceId) === true;
}

/** Throws `permission_denied`, whether or not such an instance exists. */
export function refuseUnlessAllowed(caller: Caller, instanceId: string): void {
  if (caller.allows(instanceId)) return;
  throw new RunvaultError(
    "permission_denied",
    `the token ${JSON.stringify(caller.name)} is not for instance ${JSON.stringify(instanceId)}`,
    { place: { instance: instanceId }, hint: "GET /instances lists the instances it is for." },
  );
}

/** Throws `unauthenticated`. */
export function requireCaller(caller: Caller | null | undefined): Caller {
  if (caller !== null && caller !== undefined) return caller;
  throw new RunvaultError(
    "unauthenticated",
    "this server requires a token in the header Authorization: Bearer TOKEN",
  );
}
