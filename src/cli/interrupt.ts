import { exit, RunvaultError } from "../model/error.ts";
import type { Terminal } from "./terminal.ts";

export interface InterruptOptions {
  /** Where the signals come from. */
  readonly signals: Terminal["signals"];
  /** Told once, at the first signal, for people. */
  readonly say: (text: string) => void;
  /** One sentence on how to go on after a stop. */
  readonly howToGoOn: string;
  /** Called with 130 or 143 at the second signal; ends the process. */
  readonly exit: (status: number) => void;
}

/** The stop that SIGINT and SIGTERM ask for. */
export interface Interrupt extends Disposable {
  /** Aborts at the first signal, with an `interrupted` error whose status is 130 or 143 as its reason. */
  readonly signal: AbortSignal;
}

/** Listens to SIGINT and SIGTERM until disposed: the first asks for a clean stop, the second stops at once. */
export function listenForInterrupt(options: InterruptOptions): Interrupt {
  const controller = new AbortController();
  let stopping = false;
  const onSignal = (name: NodeJS.Signals) => {
    const asked = name === "SIGINT" ? exit.interrupted : exit.terminated;
    if (stopping) {
      options.exit(asked);
      return;
    }
    stopping = true;
    options.say(`${name}: stopping; once more stops at once. ${options.howToGoOn}`);
    controller.abort(
      new RunvaultError("interrupted", `stopped by ${name}`, { status: asked, hint: options.howToGoOn }),
    );
  };
  options.signals.on("SIGINT", onSignal);
  options.signals.on("SIGTERM", onSignal);
  return {
    signal: controller.signal,
    [Symbol.dispose]: () => {
      options.signals.off("SIGINT", onSignal);
      options.signals.off("SIGTERM", onSignal);
    },
  };
}
