import { RunvaultError } from "../../model/error.ts";
import { nearestName } from "../../model/text/nearest-name.ts";

/** Capabilities of a running runtime that can fail separately, named as in the gateway's Capabilities. */
export const fallibleCapabilities = ["subscriptions", "accounts", "portfolios", "events"] as const;
export type FallibleCapability = (typeof fallibleCapabilities)[number];

const always = Number.POSITIVE_INFINITY;

interface KindEntry {
  readonly form: string;
  /** Default of `*TIMES`; undefined for a state, which takes no TIMES. */
  readonly times: number | undefined;
  readonly meaning: string;
}

const kinds = {
  "start-fails": {
    form: "start-fails@INSTANCE",
    times: 1,
    meaning: "a start or restart is accepted, then the process crashes before a run begins",
  },
  "stop-hangs": {
    form: "stop-hangs@INSTANCE",
    times: 1,
    meaning: "a stop or restart is accepted, but process and runtime keep running",
  },
  "runtime-unreachable": {
    form: "runtime-unreachable@INSTANCE",
    times: undefined,
    meaning: "the runtime is unreachable: status UNKNOWN, resources, queries and subscriptions 502",
  },
  "capability-fails": {
    form: "capability-fails@INSTANCE:CAPABILITY",
    times: undefined,
    meaning: `${fallibleCapabilities.join(", ")}: a capability that should be there fails in the runtime`,
  },
  "daemon-unreachable": {
    form: "daemon-unreachable@*",
    times: undefined,
    meaning: "the daemon is unreachable: doctor fails, lifecycle and logs 502",
  },
} as const satisfies Record<string, KindEntry>;

export type InstanceFaultKind = keyof typeof kinds;

/** A fault in an instance's behaviour, rather than in answers about it. */
export interface InstanceFault {
  readonly text: string;
  readonly kind: InstanceFaultKind;
  /** The instance, or `*` for any. */
  readonly target: string;
  readonly capability: FallibleCapability | undefined;
  readonly times: number;
}

/** All faults in instances, for `--help`. */
export const instanceFaultKinds: readonly { kind: InstanceFaultKind; form: string; meaning: string }[] =
  Object.entries(kinds).map(([kind, { form, meaning }]) => ({
    kind: kind as InstanceFaultKind,
    form,
    meaning,
  }));

/** Whether the text names a kind of instance fault, valid or not. */
export function isInstanceFault(text: string): boolean {
  return Object.hasOwn(kinds, text.split("@", 1)[0] ?? "");
}

/** Reads `start-fails@alpha-1*2`. Throws `invalid_argument` with the possible forms. */
export function parseInstanceFault(text: string): InstanceFault {
  const match = /^([a-z-]+)@([A-Za-z0-9._-]+|\*)(?::([a-z]+))?(?:\*(\d{1,9}))?$/.exec(text);
  const [, kindText = "", target = "", argument, timesText] = match ?? [];
  if (match === null || !Object.hasOwn(kinds, kindText)) {
    throw refusal(text, "it must have the form KIND@INSTANCE[:CAPABILITY][*TIMES]");
  }
  const kind = kindText as InstanceFaultKind;
  const { form, times }: KindEntry = kinds[kind];
  if (kind === "daemon-unreachable" && target !== "*") {
    throw refusal(text, "there is only one daemon for all instances", `Write ${form}.`);
  }
  if ((kind === "capability-fails") !== (argument !== undefined)) {
    throw refusal(text, `it must have the form ${form}`);
  }
  const capability = fallibleCapabilities.find((name) => name === argument);
  if (argument !== undefined && capability === undefined) {
    const near = nearestName(argument, fallibleCapabilities);
    throw refusal(
      text,
      `there is no capability ${argument}`,
      `${near === null ? "" : `Did you mean ${near}? `}The capabilities are ${fallibleCapabilities.join(", ")}.`,
    );
  }
  if (timesText !== undefined && times === undefined) {
    throw refusal(text, `${kind} takes no TIMES, because it is a state and not an event`);
  }
  if (timesText !== undefined && Number(timesText) < 1) throw refusal(text, "TIMES must be at least 1");
  return {
    text,
    kind,
    target,
    capability,
    times: timesText === undefined ? (times ?? always) : Number(timesText),
  };
}

/** The faults of one world and how often each may still occur. */
export class InstanceFaults {
  readonly #left: Map<InstanceFault, number>;

  constructor(faults: readonly InstanceFault[]) {
    this.#left = new Map(faults.map((fault) => [fault, fault.times]));
  }

  /** Whether the fault may still occur for the instance; counts it. */
  hit(kind: InstanceFaultKind, instanceId: string): boolean {
    for (const [fault, left] of this.#left) {
      if (fault.kind !== kind || left <= 0 || !isOn(fault, instanceId)) continue;
      this.#left.set(fault, left - 1);
      return true;
    }
    return false;
  }

  /** Whether the instance is in a state that a fault describes. */
  has(kind: InstanceFaultKind, instanceId: string): boolean {
    return [...this.#left.keys()].some((fault) => fault.kind === kind && isOn(fault, instanceId));
  }

  failedCapabilities(instanceId: string): readonly FallibleCapability[] {
    return fallibleCapabilities.filter((name) =>
      [...this.#left.keys()].some((fault) => fault.capability === name && isOn(fault, instanceId)),
    );
  }
}

function isOn(fault: InstanceFault, instanceId: string): boolean {
  return fault.target === "*" || fault.target === instanceId;
}

function refusal(text: string, why: string, hint?: string): RunvaultError {
  return new RunvaultError("invalid_argument", `invalid fault ${JSON.stringify(text)}: ${why}`, {
    hint:
      hint ??
      `The forms are ${Object.values(kinds)
        .map(({ form }) => form)
        .join(", ")}.`,
  });
}
