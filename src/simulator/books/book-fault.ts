import { RunvaultError } from "../../model/error.ts";

interface KindEntry {
  readonly meaning: string;
  /** What a run without a place for it lacks. */
  readonly needs: string;
  readonly hint: string;
}

const longer = "Make the run longer: --rows or --fills.";

/** Each breaks the books in one place, chosen by its run's seed, and leaves everything else consistent. */
const kinds = {
  "lose-fill": {
    meaning: "a fill is neither among the fills nor in the books; its order has it",
    needs: "a fill",
    hint: longer,
  },
  "double-fill": {
    meaning: "a fill is there twice, in the books too; its order has it once",
    needs: "a fill",
    hint: longer,
  },
  "shift-fee": {
    meaning: "a fill shows a fee 0.000000001 above the one that was booked",
    needs: "a fill",
    hint: longer,
  },
  "lose-transfer": {
    meaning: "a deposit or withdrawal during the run is in the books, but has no event",
    needs: "a deposit or withdrawal after its start",
    hint: "Give it some: --transfers N.",
  },
  "shift-equity": {
    meaning: "an equity point shows an equity 0.01 above its cash and position value",
    needs: "an equity point",
    hint: longer,
  },
  "wrong-mark": {
    meaning: "an equity point marks a position to the close of the bar before",
    needs: "an equity point with an open position and another close than the bar before",
    hint: longer,
  },
  "lose-order": {
    meaning: "a market order has no rows; its fills are there",
    needs: "a market order",
    hint: longer,
  },
  "skip-state": {
    meaning: "a market order is filled without having been accepted: its row ACCEPTED is missing",
    needs: "a market order",
    hint: longer,
  },
  "shift-average": {
    meaning: "the last row of a filled order shows an average price 0.00000001 too high",
    needs: "a filled order",
    hint: longer,
  },
  "other-metric": {
    meaning: "a volatility or Sharpe ratio is computed with ddof 0, and says ddof 1",
    needs: "a volatility or Sharpe ratio that is a number",
    hint: longer,
  },
} as const satisfies Record<string, KindEntry>;

export type BookFaultKind = keyof typeof kinds;

/** A fault in the books of an instance's runs: rows have it, and their counts agree with them. */
export interface BookFault {
  readonly text: string;
  readonly kind: BookFaultKind;
  /** The instance, or `*` for any. */
  readonly target: string;
}

/** The faults there are, for `--help`. */
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
      hint: `The kinds are ${Object.keys(kinds).join(", ")}; the instance * is any.`,
    });
  }
  return { text, kind: kind as BookFaultKind, target };
}

/** The fault in the books of an instance. Throws `invalid_argument` if there are two: one might hide the other. */
export function bookFaultOf(faults: readonly BookFault[], instanceId: string): BookFault | undefined {
  const [first, second] = faults.filter(({ target }) => target === "*" || target === instanceId);
  if (first !== undefined && second !== undefined) {
    throw refusal(second.text, `the books of ${instanceId} have a fault already, ${first.text}`, {
      hint: "Give each instance one fault in its books: --instances N makes more instances.",
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
