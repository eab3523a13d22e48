import { visible } from "../../../model/text/visible-text.ts";
import { shortText } from "../check/row-page.ts";
import { pathText } from "../field-path-schema.ts";

/** One line of a draft: a key, its value as YAML, and why it was guessed, or "" for no comment. */
export interface DraftLine {
  readonly key: string;
  readonly value: string;
  readonly why: string;
}

export function lineText({ key, value, why }: DraftLine): string {
  return `${key}: ${value}${why === "" ? "" : `  # ${visible(why)}`}`;
}

export function indented(lines: readonly string[], by = "  "): string[] {
  return lines.map((line) => `${by}${line}`);
}

/** A text as YAML, in quotes if it could be read as anything else. */
export function scalar(text: string): string {
  return /^[A-Za-z_/][\w./-]*$/.test(text) && !/^(?:true|false|null|yes|no|on|off|y|n|nan|inf)$/i.test(text)
    ? text
    : visible(JSON.stringify(text));
}

/** A path in rows or answers as YAML: dotted, or a list of names if dots are ambiguous. */
export function pathScalar(path: readonly string[]): string {
  const text = pathText(path);
  return typeof text === "string" ? scalar(text) : `[${text.map(scalar).join(", ")}]`;
}

/** A likely value that must be confirmed: no profile loads while the `?` after it remains. */
export function unsure(value: string | undefined): string {
  return visible(JSON.stringify(`${value ?? ""}?`));
}

/** A few values for a comment. */
export function someOf(values: readonly string[], most = 80): string {
  return shortText(values.join(", "), most);
}
