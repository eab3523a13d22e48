import { setTimeout as sleep } from "node:timers/promises";
import type { Gateway } from "../../gateway/gateway.ts";
import { RunvaultError } from "../../model/error.ts";
import { timerMs } from "../../model/retry/deadline.ts";
import { backoffMs } from "../../model/retry/retry-policy.ts";
import type { RunListing } from "../../model/source.ts";
import { durationText } from "../../model/text/duration-text.ts";

/** How long to wait for an unavailable gateway. */
export interface Patience {
  /** Ends waiting. */
  readonly windDown: AbortSignal;
  /** The longest single wait, in milliseconds; null: until `windDown`. */
  readonly longestMs: number | null;
  /** Called when a wait begins, every quarter of an hour, and when it is over. */
  readonly note: (text: string) => void;
  /** Called once a wait has taken `unreachableMs`, and with null if the gateway then comes back. */
  readonly onUnreachable: (error: RunvaultError | null) => void;
  readonly unreachableMs: number;
  /** Time between two notes of one wait. Default: a quarter of an hour. */
  readonly noteEveryMs?: number | undefined;
  /** Upper bounds of the first pause and of any. Default: 5 s, doubled each time up to 5 min. */
  readonly firstPauseMs?: number | undefined;
  readonly longestPauseMs?: number | undefined;
  /** Random numbers in [0, 1) for the pauses. Default Math.random. */
  readonly random?: (() => number) | undefined;
}

/** A gateway whose outages are waited out. */
export interface PatientGateway extends Gateway {
  /** Number of outages. */
  readonly outages: number;
  /** Why the last wait failed; null if the gateway came back. */
  readonly outage: RunvaultError | null;
}

/**
 * Waits out a gateway's outages: it cannot be reached, is overloaded, or answers 5xx or an HTML page to everything.
 * When a request has failed after all retries, a small request tests the gateway. If that is answered, the failure
 * belongs to the first request and is thrown. Otherwise all requests wait, with growing pauses, until the gateway
 * answers again, and are repeated. When a wait times out, its error concerns the whole job.
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
  /** The current wait. */
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

  /** Received rows are the caller's: after a later failure, the caller asks again. */
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

  /** Returns once repeating the request makes sense; otherwise throws the error. */
  async #untilBack(thrown: unknown, signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    if (!(thrown instanceof RunvaultError) || !isOutage(thrown)) throw thrown;
    // if many fail at once, one of them finds out why
    this.#back ??= this.#wait(thrown).finally(() => {
      this.#back = undefined;
    });
    const left = Promise.withResolvers<never>();
    const leave = () => left.reject(signal?.reason);
    signal?.addEventListener("abort", leave, { once: true });
    try {
      await Promise.race([this.#back, left.promise]);
    } catch (error) {
      // the answers to others are not errors of this one
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
      // at least half, because a pause of nothing is none
      random: () => 0.5 + random() / 2,
    };
    this.count++;
    this.error = error;
    note(`waiting for the gateway, which is unavailable: ${error.message}`);
    let nextNote = noteEveryMs;
    let isTold = false;
    for (let failures = 1; ; failures++) {
      const waited = performance.now() - began;
      if (windDown.aborted || (longestMs !== null && waited >= longestMs)) throw error.concerning("job");
      if (waited >= nextNote) {
        note(`the gateway is still unavailable after ${durationText(waited)}: ${error.message}`);
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

  /** Whether it answers a small request. A refusal is also an answer; the real request will get it too. */
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
  return error.retry === "again";
}

/** The gateway answers: the failure belongs to the request. */
class NotOut extends Error {}
