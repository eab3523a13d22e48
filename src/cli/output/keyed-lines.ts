import type { Session } from "../process/session.ts";
import { wrapped } from "./wrap-lines.ts";

/**
 * Lines of a name and a text, wrapped at the terminal's width. An empty name continues the one before; empty texts are
 * left out. Texts from outside must have been through `visible`, because colours are kept.
 */
export function keyedLines(
  lines: readonly (readonly [name: string, text: string])[],
  { terminal }: Pick<Session, "terminal">,
  least = 0,
): string {
  const shown = lines.filter(([, text]) => text !== "");
  const width = Math.max(least, ...shown.map(([name]) => name.length));
  const room = (terminal.columns ?? Number.POSITIVE_INFINITY) - width - 2;
  return shown
    .flatMap(([name, told]) =>
      wrapped(told, room).map((line, index) => `${(index === 0 ? name : "").padEnd(width)}  ${line}\n`),
    )
    .join("");
}
