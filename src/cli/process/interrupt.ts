import { exit, RunvaultError } from "../../model/error.ts";
import type { Terminal } from "../output/terminal.ts";

export interface InterruptOptions {
  /** The source of signals. */
  readonly signals: Terminal["signals"];
  /** Called once, at the first signal, with text for people. */
  readonly say: (text: string) => void;
  /** How to continue after a stop, in one sentence. */
  readonly howToGoOn: string;
  /** Ends the process by a signal that no longer has a listener. */
  readonly endBy: Terminal["endBy"];
  /** How long further signals count as the first one: `timeout`, and npm on Ctrl-C, send two. Default 1,000. */
  readonly repeatMs?: number;
}

/** A stop requested by SIGINT or SIGTERM. */
export interface Interrupt extends Disposable {
  /** Aborts at the first signal with an `interrupted` error, status 130 or 143. */
  readonly signal: AbortSignal;
}

/**
 * Listens to SIGINT and SIGTERM until disposed. The first one asks for a clean stop. A second later the listeners are
 * removed, so that the next one ends the process directly: `process.exit` would wait for native threads, and no
 * listener runs meanwhile.
 */
export function listenForInterrupt(options: InterruptOptions): Interrupt {
  const { signals, repeatMs = 1_000 } = options;
  const controller = new AbortController();
  let firstMs: number | undefined;
  const leave = () => {
    signals.off("SIGINT", onSignal);
    signals.off("SIGTERM", onSignal);
  };
  const onSignal = (name: NodeJS.Signals) => {
    if (firstMs !== undefined) {
      if (performance.now() - firstMs < repeatMs) return;
      leave();
      options.endBy(name);
      return;
    }
    firstMs = performance.now();
    // not before signals that are already queued: one that was taken from the system and has no listener is lost
    setTimeout(() => setImmediate(leave).unref(), repeatMs).unref();
    const how =
      name === "SIGINT"
        ? "Stopping (press Ctrl-C again to stop at once)."
        : `Stopping on ${name} (another signal stops at once).`;
    options.say(`${how} ${options.howToGoOn}`);
    controller.abort(
      new RunvaultError("interrupted", `stopped by ${name}`, {
        status: name === "SIGINT" ? exit.interrupted : exit.terminated,
        hint: options.howToGoOn,
      }),
    );
  };
  signals.on("SIGINT", onSignal);
  signals.on("SIGTERM", onSignal);
  return {
    signal: controller.signal,
    [Symbol.dispose]: () => {
      // a repeat may still come while the command prints how it ended
      if (firstMs === undefined) leave();
    },
  };
}
