import { type ErrorCode, RunvaultError } from "../model/error.ts";
import type { Notices } from "./notices.ts";

/** What is asked for; null where the gateway answers by one of the codes, or by 204, that it has nothing of it. */
export async function nullOnAbsence<T>(
  absent: readonly ErrorCode[],
  ask: () => Promise<T>,
): Promise<T | null> {
  try {
    return await ask();
  } catch (thrown) {
    if (!(thrown instanceof RunvaultError)) throw thrown;
    if (absent.includes(thrown.code) || thrown.status === 204) return null;
    throw thrown;
  }
}

/**
 * What a gateway need not have, such as storage facts; null also where it refuses the request, which is told. Throws
 * what says something else: that it failed, who may not ask, that the run is not there or is another.
 */
export async function nullOnRefusal<T>(
  what: string,
  absent: readonly ErrorCode[],
  notices: Notices,
  ask: () => Promise<T>,
): Promise<T | null> {
  try {
    return await nullOnAbsence(absent, ask);
  } catch (thrown) {
    if (!(thrown instanceof RunvaultError) || !refusals.has(thrown.code)) throw thrown;
    // 400: not the gateway lacks something, the request is wrong
    if ((thrown.status ?? 0) <= 400) throw thrown;
    notices.tell(`the gateway does not provide ${what}: ${thrown.message}`);
    return null;
  }
}

/** What the request is refused by, whatever it asks for. */
const refusals: ReadonlySet<ErrorCode> = new Set(["refused", "limit_exceeded"]);
