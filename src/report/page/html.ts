import { visible } from "../../model/text/visible-text.ts";

/** Text that a browser may take for HTML: only what `html` made. */
export class Html {
  readonly text: string;

  private constructor(text: string) {
    this.text = text;
  }

  /** A chart's drawing: the only text that is not escaped here, because its renderer did. */
  static drawn(svg: string): Html {
    return new Html(svg);
  }

  /** Only for `html`. */
  static of(text: string): Html {
    return new Html(text);
  }
}

/** Values allowed in a template: neither null nor undefined, so that no page ever shows these words. */
export type HtmlValue = string | number | bigint | Html | readonly HtmlValue[];

/**
 * HTML from a template. Everything in `${}` that is not `Html` is text and escaped, so it is shown literally, within
 * elements and within attributes in double quotes alike, and characters that hide or turn text are shown as escapes.
 */
export function html(parts: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  return Html.of(parts.map((part, index) => part + textOf(values[index] ?? "")).join(""));
}

/** No HTML. */
export const nothing = html``;

function textOf(value: HtmlValue): string {
  if (value instanceof Html) return value.text;
  if (Array.isArray(value)) return value.map(textOf).join("");
  return escaped(String(value));
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function escaped(text: string): string {
  return visible(text).replace(/[&<>"']/g, (character) => entities[character]!);
}
