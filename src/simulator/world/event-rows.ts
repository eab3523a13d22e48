import type { RowSink, RunPlan } from "./run-plan.ts";

/** An event of the account: money that moved, or something else. */
export interface AccountEvent {
  /** The kind without its family, such as `deposit`. */
  readonly kind: string;
  readonly message: string;
  /** The change of cash, as text; empty if no money moved. */
  readonly amount?: string;
  readonly currency?: string;
  /** The instrument concerned; none by default. */
  readonly symbol?: string;
  readonly payload?: object;
}

export interface EventRows {
  runtime(micros: number, kind: string, severity: string, message: string, payload: object): void;
  account(micros: number, nanos: number, event: AccountEvent): void;
}

export function eventRows(plan: RunPlan, emit: RowSink): EventRows {
  const accountHead = `"resource_key":"events.account","account":${JSON.stringify(plan.account)},"portfolio":${JSON.stringify(plan.portfolio)},`;
  return {
    runtime(micros, kind, severity, message, payload) {
      emit(
        "events",
        micros,
        0,
        `"resource_key":"events.runtime","account":"","portfolio":"","venue":"","symbol":"","kind":"runtime.${kind}","severity":"${severity}","message":${JSON.stringify(message)},"amount":"","currency":"","payload":${JSON.stringify(JSON.stringify(payload))}}`,
      );
    },
    account(micros, nanos, { kind, message, amount = "", currency = "", symbol = "", payload }) {
      const venue = symbol === "" ? "" : plan.venue;
      const details = payload === undefined ? "" : JSON.stringify(payload);
      emit(
        "events",
        micros,
        nanos,
        `${accountHead}"venue":${JSON.stringify(venue)},"symbol":${JSON.stringify(symbol)},"kind":"account.${kind}","severity":"INFO","message":${JSON.stringify(message)},"amount":"${amount}","currency":${JSON.stringify(currency)},"payload":${JSON.stringify(details)}}`,
      );
    },
  };
}
