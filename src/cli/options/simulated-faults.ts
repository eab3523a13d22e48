import { type Fault, faultKinds, parseFault } from "../../faults/fault.ts";
import { RunvaultError } from "../../model/error.ts";
import { nearestName } from "../../model/text/nearest-name.ts";
import {
  type InstanceFault,
  instanceFaultKinds,
  isInstanceFault,
  parseInstanceFault,
} from "../../simulator/control/instance-fault.ts";

export interface SimulatedFaults {
  /** In the answers about history. */
  readonly answers: readonly Fault[];
  /** In what instances do. */
  readonly instances: readonly InstanceFault[];
}

/** Reads what was given with `--fault`. Throws `invalid_argument` with the nearest right kind. */
export function parseFaults(texts: readonly string[]): SimulatedFaults {
  const answers: Fault[] = [];
  const instances: InstanceFault[] = [];
  for (const text of texts) {
    if (isInstanceFault(text)) instances.push(parseInstanceFault(text));
    else {
      refuseNearInstanceKind(text);
      answers.push(parseFault(text));
    }
  }
  return { answers, instances };
}

/** A misspelt kind that is nearer to one of instances than to one of answers is told so here. */
function refuseNearInstanceKind(text: string): void {
  const [kind = ""] = text.split("@", 1);
  const kinds = [...faultKinds, ...instanceFaultKinds].map((known) => known.kind as string);
  const near = nearestName(kind, kinds);
  if (near === null || !isInstanceFault(near)) return;
  throw new RunvaultError(
    "invalid_argument",
    `invalid fault ${JSON.stringify(text)}: there is no kind ${kind}`,
    {
      hint: `Did you mean ${near}?`,
    },
  );
}
