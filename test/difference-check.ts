import type { Answer } from "./differential-answer.ts";
import type { Phase } from "./differential-request.ts";

/**
 * What may differ: where, in what, and why. In route, field and value `*` is anything within a part, `**` anything, and
 * `{a,b}` one or the other.
 */
export interface Difference {
  /** Below the base address, such as `/instances/:id`, or `InstanceService/GetInstance`. */
  readonly route: string;
  /** As `Answer` names it, or `outcome`. */
  readonly field: string;
  /** What the second side has there, empty for nothing at all; without it, anything. */
  readonly value?: string;
  /** The first side has no such field at all. */
  readonly isMore?: true;
  /** Where it is so in one phase alone. */
  readonly phase?: Phase;
  readonly reason: string;
}

/** A field of an answer that is not what it is on the other side. */
export interface FoundDifference {
  readonly route: string;
  readonly field: string;
  readonly phase: Phase;
  /** Undefined where the side has no such field. */
  readonly values: readonly [string | undefined, string | undefined];
}

/**
 * The fields in which two answers differ. Of answers that fail differently, or one of them alone, that is all there is to
 * say; and bodies of different types are not compared.
 */
export function differingFields(
  one: Answer,
  other: Answer,
  where: Pick<FoundDifference, "route" | "phase">,
): FoundDifference[] {
  if (one.outcome !== other.outcome) {
    return [{ ...where, field: "outcome", values: [one.outcome, other.outcome] }];
  }
  const type = "headers.content-type";
  const isSameType = one.fields.get(type) === other.fields.get(type);
  return [...new Set([...one.fields.keys(), ...other.fields.keys()])]
    .filter((field) => isSameType || field.startsWith("headers."))
    .filter((field) => one.fields.get(field) !== other.fields.get(field))
    .map((field) => ({ ...where, field, values: [one.fields.get(field), other.fields.get(field)] }));
}

/** A list of differences that notes which of them were met. */
export class AllowedDifferences {
  readonly #entries: readonly Entry[];

  constructor(list: readonly Difference[]) {
    this.#entries = list.map((difference) => ({
      difference,
      routes: alternativesOf(difference.route),
      fields: alternativesOf(difference.field),
      values: difference.value === undefined ? undefined : alternativesOf(difference.value),
    }));
  }

  /** Whether an entry covers it. */
  covers(found: FoundDifference): boolean {
    return this.#entries.some((entry) => matches(entry, found) !== undefined);
  }

  /** The same; every part of an entry that covers it is met. */
  meet(found: FoundDifference): boolean {
    const matching = this.#entries.flatMap((entry) => matches(entry, found) ?? []);
    for (const part of matching) part.met = true;
    return matching.length > 0;
  }

  /** Entries, part by part, of which nothing was found. */
  unmet(): string[] {
    return this.#entries.flatMap(({ difference: { route, field }, routes, fields, values = [] }) =>
      [...routes, ...fields, ...values]
        .filter(({ met }) => !met)
        .map(({ text }) => `${text} of ${route} ${field}`),
    );
  }
}

interface Alternative {
  readonly text: string;
  readonly pattern: RegExp;
  met: boolean;
}

interface Entry {
  readonly difference: Difference;
  readonly routes: readonly Alternative[];
  readonly fields: readonly Alternative[];
  readonly values: readonly Alternative[] | undefined;
}

/** The parts of the entry that cover the difference; undefined where it does not. */
function matches(
  { difference, routes, fields, values }: Entry,
  found: FoundDifference,
): Alternative[] | undefined {
  const { phase, isMore } = difference;
  if (phase !== undefined && phase !== found.phase) return undefined;
  if (isMore === true && found.values[0] !== undefined) return undefined;
  const parts = [
    routes.find(({ pattern }) => pattern.test(found.route)),
    fields.find(({ pattern }) => pattern.test(found.field)),
    ...(values === undefined ? [] : [values.find(({ pattern }) => pattern.test(found.values[1] ?? ""))]),
  ];
  return parts.every((part) => part !== undefined) ? parts : undefined;
}

/** The text once for each of the choices in braces, of which it has one list at most. */
function alternativesOf(text: string): Alternative[] {
  const [, before = "", choices, after = ""] = /^([^{]*)\{([^}]*)\}(.*)$/s.exec(text) ?? [];
  const texts = choices === undefined ? [text] : choices.split(",").map((choice) => before + choice + after);
  return texts.map((each) => ({ text: each, pattern: patternOf(each), met: false }));
}

function patternOf(text: string): RegExp {
  const parts = text.split(/(\*\*|\*)/).map((part) => {
    if (part === "**") return "[^]*";
    return part === "*" ? "[^./]*" : part.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
  });
  return new RegExp(`^${parts.join("")}$`);
}

/** A difference as the sentence of a failure; the names are those of its two sides. */
export function sentence(
  difference: FoundDifference,
  [first, second]: readonly [string, string],
  request: string,
): string {
  const [one, other] = difference.values.map(shown);
  const at = placeOfDifference(...difference.values);
  return `${difference.route} ${difference.field}: ${first} ${one}, ${second} ${other}${at} (${request})`;
}

const mostShown = 200;

function shown(value: string | undefined): string {
  if (value === undefined) return "nothing";
  return value.length <= mostShown ? value : `${value.slice(0, mostShown)}… of ${value.length} characters`;
}

/** Where two long texts begin to differ. */
function placeOfDifference(one = "", other = ""): string {
  if (one.length <= mostShown && other.length <= mostShown) return "";
  let at = 0;
  while (at < one.length && one[at] === other[at]) at += 1;
  return `, from character ${at} on: ${shown(one.slice(at))} | ${shown(other.slice(at))}`;
}
