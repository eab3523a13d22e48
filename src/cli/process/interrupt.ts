import { exit, RunvaultError } from "../../model/error.ts";
import type { Terminal } from "../output/terminal.ts";

export interface InterruptOptions {
  /** Where the signals come from. */
  readonly signals: Terminal["signals"];
  /** Told once, at the first signal, for people. */
  readonly say: (text: string) => void;
  /** One sentence on how to go on after a stop. */
  readonly howToGoOn: string;
  /** Ends the process by a signal that nobody listens to any more. */
  readonly endBy: Terminal["endBy"];
  /** How long signals count as the first one: `timeout`, and npm on Ctrl-C, send two. Default 1,000. */
  readonly repeatMs?: number;
}

/** The stop that SIGINT and SIGTERM ask for. */
export interface Interrupt extends Disposable {
  /** Aborts at the first signal, with an `interrupted` error whose status is 130 or 143 as its reason. */
  readonly signal: AbortSignal;
}

/**
 * Listens to SIGINT and SIGTERM until disposed: the first asks for a clean stop. A second later nobody listens any more,
 * so that the next one ends the process by the system's own hand: `process.exit` would wait for whatever still runs in
 * native threads, and while it waits no listener is called.
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
    // not ahead of signals that wait already: what was taken from the system and has no listener is lost
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
      // a repeat may still come while the command says how it ended
      if (firstMs === undefined) leave();
    },
  };
}
