import { Help } from "commander";
import { wrapped } from "../output/wrap-lines.ts";

/** The width of help that goes to no terminal. */
export const usualColumns = 80;

/** The least that a text of the help is broken to. */
export const leastColumns = 20;

/** The least for descriptions in a column beside their terms. */
const leastBeside = 40;

/** The width that the texts below the options are written for. */
const writtenColumns = 100;

/** Characters for a short term, such as a command's name, in a narrow terminal. */
const shortTerm = 12;

/** An item of the help: in a terminal too narrow for two columns, an option's description stands below it. */
export function helpItem(term: string, termWidth: number, description: string, helper: Help): string {
  const width = helper.helpWidth ?? usualColumns;
  if (description === "" || width - termWidth - 4 >= leastBeside)
    return Help.prototype.formatItem.call(helper, term, termWidth, description, helper);
  const isBeside = term.length <= shortTerm && !term.startsWith("-");
  const before = isBeside ? `  ${term.padEnd(shortTerm)}  ` : `  ${term}\n      `;
  const indent = isBeside ? shortTerm + 4 : 6;
  return before + wrapped(description, width - indent).join(`\n${" ".repeat(indent)}`);
}

/** A help in a terminal of so many columns, broken at blanks; null: as it is. */
export function wrapHelp(text: string, columns: number | null): string {
  if (columns === null || columns >= writtenColumns) return text;
  return text
    .replace(/^[^ \n].*(?:\n[^ \n].*)*/gm, (paragraph) =>
      wrapped(paragraph.replaceAll("\n", " "), columns).join("\n"),
    )
    .replace(/^ .+/gm, (line) => {
      const [before = ""] = /^ +(?:\S+ )*\S+ {2,}(?=\S)/.exec(line) ?? [];
      const own =
        before.length > 0 && before.length < columns / 2 ? before.length : /^ */.exec(line)![0].length + 4;
      return wrapped(line, columns, columns - own).join(`\n${" ".repeat(own)}`);
    });
}
