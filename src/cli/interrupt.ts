import { exit, RunvaultError } from "../model/error.ts";

export interface InterruptOptions {
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
  process.on("SIGINT", onSignal);
  process.on("SIGTERM", onSignal);
  return {
    signal: controller.signal,
    [Symbol.dispose]: () => {
      process.off("SIGINT", onSignal);
      process.off("SIGTERM", onSignal);
    },
  };
}
