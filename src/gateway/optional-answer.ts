import { type ErrorCode, RunvaultError } from "../model/error.ts";
import type { Notices } from "./notices.ts";

/** The answer; null if the gateway says by one of the codes, or by 204, that it has none. */
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
 * An optional answer, such as storage facts; null also if the gateway refuses the request, which is reported. Throws
 * other errors: that it failed, that the caller may not ask, that the run is missing or another one.
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
    // 400: the request is wrong, not the gateway's support for it
    if ((thrown.status ?? 0) <= 400) throw thrown;
    notices.tell(`the gateway does not provide ${what}: ${thrown.message}`);
    return null;
  }
}

/** Codes that refuse the request, whatever it asks for. */
const refusals: ReadonlySet<ErrorCode> = new Set(["refused", "limit_exceeded"]);
