import { RunvaultError } from "../../model/error.ts";

interface KindEntry {
  readonly meaning: string;
  /** What a run must have for the fault, for messages. */
  readonly needs: string;
  readonly hint: string;
}

const longer = "Make the run longer with --rows or --fills.";

/** Each breaks the books in one place, which the run's seed selects, and leaves everything else consistent. */
const kinds = {
  "lose-fill": {
    meaning: "a fill is missing from the fills and the books; its order includes it",
    needs: "a fill",
    hint: longer,
  },
  "double-fill": {
    meaning: "a fill occurs twice, also in the books; its order includes it once",
    needs: "a fill",
    hint: longer,
  },
  "shift-fee": {
    meaning: "a fill has a fee 0.000000001 above the booked one",
    needs: "a fill",
    hint: longer,
  },
  "lose-transfer": {
    meaning: "a deposit or withdrawal during the run is in the books but has no event",
    needs: "a deposit or withdrawal after its start",
    hint: "Add some with --transfers N.",
  },
  "shift-equity": {
    meaning: "an equity point has an equity 0.01 above its cash and position value",
    needs: "an equity point",
    hint: longer,
  },
  "wrong-mark": {
    meaning: "an equity point marks a position to the previous bar's close",
    needs: "an equity point with an open position and a close that differs from the previous bar's",
    hint: longer,
  },
  "lose-order": {
    meaning: "a market order has no rows, although it has fills",
    needs: "a market order",
    hint: longer,
  },
  "skip-state": {
    meaning: "a market order is filled without being accepted: its ACCEPTED row is missing",
    needs: "a market order",
    hint: longer,
  },
  "shift-average": {
    meaning: "the last row of a filled order has an average price 0.00000001 too high",
    needs: "a filled order",
    hint: longer,
  },
  "other-metric": {
    meaning: "a volatility or Sharpe ratio is computed with ddof 0 but says ddof 1",
    needs: "a volatility or Sharpe ratio that is a number",
    hint: longer,
  },
} as const satisfies Record<string, KindEntry>;

export type BookFaultKind = keyof typeof kinds;

/** A fault in the books of an instance's runs. It is in the rows, and counts agree with the rows. */
export interface BookFault {
  readonly text: string;
  readonly kind: BookFaultKind;
  /** The instance, or `*` for any. */
  readonly target: string;
}

/** All faults in books, for `--help`. */
export const bookFaultKinds: readonly { kind: BookFaultKind; form: string; meaning: string }[] =
  Object.entries(kinds).map(([kind, { meaning }]) => ({
    kind: kind as BookFaultKind,
    form: `${kind}@INSTANCE`,
    meaning,
  }));

/** Whether the text names a kind of fault in the books, valid or not. */
export function isBookFault(text: string): boolean {
  return Object.hasOwn(kinds, text.split("@", 1)[0] ?? "");
}

/** Reads `lose-fill@alpha-1`. Throws `invalid_argument` with the form. */
export function parseBookFault(text: string): BookFault {
  const match = /^([a-z-]+)@([A-Za-z0-9._-]+|\*)$/.exec(text);
  const [, kind = "", target = ""] = match ?? [];
  if (match === null || !Object.hasOwn(kinds, kind)) {
    throw refusal(text, "it must have the form KIND@INSTANCE", {
      hint: `The kinds are ${Object.keys(kinds).join(", ")}; the instance * means any.`,
    });
  }
  return { text, kind: kind as BookFaultKind, target };
}

/** The fault in the books of an instance. Throws `invalid_argument` if there are two: one might hide the other. */
export function bookFaultOf(faults: readonly BookFault[], instanceId: string): BookFault | undefined {
  const [first, second] = faults.filter(({ target }) => target === "*" || target === instanceId);
  if (first !== undefined && second !== undefined) {
    throw refusal(second.text, `the books of ${instanceId} already have a fault, ${first.text}`, {
      hint: "Use one fault in books per instance; --instances N makes more instances.",
    });
  }
  return first;
}

/** Why a fault cannot be put into a run. */
export function noPlaceFor({ text, kind }: BookFault, instance: string, run: string): RunvaultError {
  const { needs, hint } = kinds[kind];
  return refusal(text, `the run ${instance}/${run} does not have ${needs}`, { hint });
}

function refusal(text: string, why: string, details: { readonly hint?: string }): RunvaultError {
  return new RunvaultError("invalid_argument", `invalid fault ${JSON.stringify(text)}: ${why}`, details);
}
