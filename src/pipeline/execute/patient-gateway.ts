import { setTimeout as sleep } from "node:timers/promises";
import type { Gateway } from "../../gateway/gateway.ts";
import { isHtmlPage } from "../../gateway/html-page.ts";
import { RunvaultError } from "../../model/error.ts";
import { timerMs } from "../../model/retry/deadline.ts";
import { backoffMs } from "../../model/retry/retry-policy.ts";
import type { RunListing } from "../../model/source.ts";
import { durationText } from "../../model/text/duration-text.ts";

/** How long a gateway that is out of service is waited for. */
export interface Patience {
  /** Ends waiting. */
  readonly windDown: AbortSignal;
  /** The longest wait for one gateway to come back, in milliseconds; null: until `windDown`. */
  readonly longestMs: number | null;
  /** Called when a wait begins, each quarter of an hour, and when it is over. */
  readonly note: (text: string) => void;
  /** Called once a wait has taken `unreachableMs`, and with null when the gateway is back after that. */
  readonly onUnreachable: (error: RunvaultError | null) => void;
  readonly unreachableMs: number;
  /** Time between two notes of one wait. Default: a quarter of an hour. */
  readonly noteEveryMs?: number | undefined;
  /** Upper bounds of the pauses: the first, and any. Default: 5 s, doubled each time up to 5 min. */
  readonly firstPauseMs?: number | undefined;
  readonly longestPauseMs?: number | undefined;
  /** Random numbers in [0, 1) for the pauses. Default Math.random. */
  readonly random?: (() => number) | undefined;
}

/** A gateway that is waited for. */
export interface PatientGateway extends Gateway {
  /** How often it was out of service. */
  readonly outages: number;
  /** Why it was out of service when it was last waited for in vain; null where it came back. */
  readonly outage: RunvaultError | null;
}

/**
 * A gateway whose outages are waited for: it is out of reach, has too much to do, or answers 5xx or a page of HTML, whatever
 * it is asked. What
 * failed, all retries included, is held against something small that it is asked then: where it answers that, the failure is
 * the question's own, and thrown. Otherwise all that is asked of it waits, with growing pauses, until it answers again, and is
 * asked again. A wait that is over throws the error, which concerns the whole job then.
 */
export function patientGateway(gateway: Gateway, patience: Patience): PatientGateway {
  const outage = new Outage(gateway, patience);
  const { pagedRows, otherFacts, listings, answer } = gateway;
  const patiently = <T>(signal: AbortSignal | undefined, ask: () => Promise<T>) => outage.ask(signal, ask);
  const listing = (own: RunListing): RunListing => ({
    ...own,
    instances: (signal) => patiently(signal, () => own.instances(signal)),
    runs: (instanceId, signal) => patiently(signal, () => own.runs(instanceId, signal)),
    currentRun: (instanceId, signal) => patiently(signal, () => own.currentRun(instanceId, signal)),
  });
  return {
    ...gateway,
    get outages() {
      return outage.count;
    },
    get outage() {
      return outage.error;
    },
    instances: (signal) => patiently(signal, () => gateway.instances(signal)),
    runs: (instanceId, signal) => patiently(signal, () => gateway.runs(instanceId, signal)),
    facts: (run, bounds, signal, asked) => patiently(signal, () => gateway.facts(run, bounds, signal, asked)),
    document: (run, kind, signal) => patiently(signal, () => gateway.document(run, kind, signal)),
    rows: (request) => outage.rows(request.signal, () => gateway.rows(request)),
    ...(pagedRows && {
      pagedRows: (request) => outage.rows(request.signal, () => pagedRows.call(gateway, request)),
    }),
    ...(otherFacts && {
      otherFacts: (run, bounds, signal, asked) =>
        patiently(signal, () => otherFacts.call(gateway, run, bounds, signal, asked)),
    }),
    ...(listings && {
      listings: async (signal) =>
        (await patiently(signal, () => listings.call(gateway, signal))).map(listing),
    }),
    ...(answer && { answer: answer.bind(gateway) }),
  };
}

class Outage {
  readonly #gateway: Gateway;
  readonly #patience: Patience;
  /** The wait that is under way. */
  #back: Promise<void> | undefined;
  count = 0;
  error: RunvaultError | null = null;

  constructor(gateway: Gateway, patience: Patience) {
    this.#gateway = gateway;
    this.#patience = patience;
  }

  async ask<T>(signal: AbortSignal | undefined, ask: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await ask();
      } catch (thrown) {
        await this.#untilBack(thrown, signal);
      }
    }
  }

  /** Rows that came are the caller's: what fails behind them is for the caller to ask again. */
  async *rows(
    signal: AbortSignal | undefined,
    ask: () => AsyncIterable<Uint8Array>,
  ): AsyncGenerator<Uint8Array, void> {
    for (;;) {
      let began = false;
      try {
        for await (const chunk of ask()) {
          began = true;
          yield chunk;
        }
        return;
      } catch (thrown) {
        if (began) throw thrown;
        await this.#untilBack(thrown, signal);
      }
    }
  }

  /** Returns once it makes sense to ask again. Throws what was thrown where it does not. */
  async #untilBack(thrown: unknown, signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    if (!(thrown instanceof RunvaultError) || !isOutage(thrown)) throw thrown;
    // of many that fail at once, one finds out why
    this.#back ??= this.#wait(thrown).finally(() => {
      this.#back = undefined;
    });
    const left = Promise.withResolvers<never>();
    const leave = () => left.reject(signal?.reason);
    signal?.addEventListener("abort", leave, { once: true });
    try {
      await Promise.race([this.#back, left.promise]);
    } catch (error) {
      // the answers to others are no errors of this one
      throw error instanceof NotOut ? thrown : error;
    } finally {
      signal?.removeEventListener("abort", leave);
    }
  }

  async #wait(error: RunvaultError): Promise<void> {
    const { windDown, longestMs, note, random = Math.random } = this.#patience;
    const { firstPauseMs = 5_000, longestPauseMs = 300_000, noteEveryMs = 900_000 } = this.#patience;
    const { onUnreachable, unreachableMs } = this.#patience;
    if (await this.#answers()) throw new NotOut();
    const began = performance.now();
    const policy = {
      backoffBaseMs: firstPauseMs,
      backoffMaxMs: longestPauseMs,
      retryAfterMaxMs: longestPauseMs,
      // half at least, for a pause of nothing is none
      random: () => 0.5 + random() / 2,
    };
    this.count++;
    this.error = error;
    note(`the gateway is out of service, and waited for: ${error.message}`);
    let nextNote = noteEveryMs;
    let isTold = false;
    for (let failures = 1; ; failures++) {
      const waited = performance.now() - began;
      if (windDown.aborted || (longestMs !== null && waited >= longestMs)) throw error.concerning("job");
      if (waited >= nextNote) {
        note(`the gateway is still out of service, after ${durationText(waited)}: ${error.message}`);
        nextNote = waited + noteEveryMs;
      }
      if (!isTold && waited >= unreachableMs) {
        isTold = true;
        onUnreachable(error);
      }
      const pause = backoffMs(failures, error.retryAfterMs, policy);
      const events = [
        nextNote,
        ...(isTold ? [] : [unreachableMs]),
        ...(longestMs === null ? [] : [longestMs]),
      ];
      const atMost = Math.min(pause, ...events.map((at) => at - waited));
      await sleep(timerMs(atMost), undefined, { signal: windDown }).catch(() => {});
      if (!windDown.aborted && (await this.#answers())) {
        this.error = null;
        if (isTold) onUnreachable(null);
        note(`the gateway answers again after ${durationText(performance.now() - began)}`);
        return;
      }
    }
  }

  /** Whether it answers something small. What it refuses it has answered: that is for who asks to hear. */
  async #answers(): Promise<boolean> {
    try {
      await this.#gateway.instances(this.#patience.windDown);
      return true;
    } catch (thrown) {
      return !isOutage(RunvaultError.from(thrown)) && !this.#patience.windDown.aborted;
    }
  }
}

function isOutage(error: RunvaultError): boolean {
  return error.retry === "again" || isHtmlPage(error);
}

/** The gateway answers: what failed is about what was asked. */
class NotOut extends Error {}
