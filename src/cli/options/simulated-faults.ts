import { type Fault, faultKinds, parseFault } from "../../faults/fault.ts";
import { RunvaultError } from "../../model/error.ts";
import { nearestName } from "../../model/text/nearest-name.ts";
import {
  type BookFault,
  bookFaultKinds,
  isBookFault,
  parseBookFault,
} from "../../simulator/books/book-fault.ts";
import {
  type InstanceFault,
  instanceFaultKinds,
  isInstanceFault,
  parseInstanceFault,
} from "../../simulator/control/instance-fault.ts";

export interface SimulatedFaults {
  /** Faults in answers about history. */
  readonly answers: readonly Fault[];
  /** Faults in what instances do. */
  readonly instances: readonly InstanceFault[];
  /** Faults in the books of runs. */
  readonly books: readonly BookFault[];
}

/** Parses the values of `--fault`. Throws `invalid_argument` with the nearest right kind. */
export function parseFaults(texts: readonly string[]): SimulatedFaults {
  const answers: Fault[] = [];
  const instances: InstanceFault[] = [];
  const books: BookFault[] = [];
  for (const text of texts) {
    if (isInstanceFault(text)) instances.push(parseInstanceFault(text));
    else if (isBookFault(text)) books.push(parseBookFault(text));
    else {
      refuseNearOtherKind(text);
      answers.push(parseFault(text));
    }
  }
  return { answers, instances, books };
}

/** Suggests a kind of instance or book fault if the misspelt kind is nearer to one of those. */
function refuseNearOtherKind(text: string): void {
  const [kind = ""] = text.split("@", 1);
  const kinds = [...faultKinds, ...instanceFaultKinds, ...bookFaultKinds].map(
    (known) => known.kind as string,
  );
  const near = nearestName(kind, kinds);
  if (near === null || !(isInstanceFault(near) || isBookFault(near))) return;
  throw new RunvaultError(
    "invalid_argument",
    `invalid fault ${JSON.stringify(text)}: there is no kind ${kind}`,
    {
      hint: `Did you mean ${near}?`,
    },
  );
}
