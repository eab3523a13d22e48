import { stripVTControlCharacters } from "node:util";
import { createScrubber, type Scrubber } from "./scrubber.ts";

/** More of it says no more, and fills the screen, the log and the manifest. */
const longestText = 500;

/** What a gateway says for its operators beside an error's code. */
export interface OperatorWords {
  readonly message?: string | undefined;
  readonly hint?: string | undefined;
}

/**
 * A gateway's message and hint as people may see them, to stand behind our own words: one line of at most 500
 * characters without control characters, what commands a terminal, and secrets. Empty where it says nothing.
 */
export function operatorText({ message, hint }: OperatorWords, scrubber: Scrubber): string {
  const [said, advice] = [message, hint].map((text) => scrubber.scrub(oneLine(text ?? "")));
  if (!said && !advice) return "";
  return `: ${cutTo(longestText, [said, advice && `(its hint: ${advice})`].filter(Boolean).join(" "))}`;
}

/** More of a row than its ids and its first values says no more. */
const longestRow = 300;
/** What is left of it once unseen characters and secrets are taken out may be cut further. */
const mostOfRow = 4096;

/** A row that a gateway gave, as people may see it in a message: what `operatorText` makes of words, in 300 characters. */
export function rowText(line: string): string {
  return cutTo(longestRow, createScrubber().scrub(oneLine(line.slice(0, mostOfRow))));
}

function oneLine(text: string): string {
  return (
    stripVTControlCharacters(text)
      // what is not seen may hide a secret from the search for it, or turn the direction of what stands behind it
      .replace(/\p{Cf}+/gu, "")
      .replace(/[\p{Cc}\p{Cs}\p{Z}]+/gu, " ")
      .trim()
  );
}

function cutTo(most: number, text: string): string {
  const characters = [...text];
  return characters.length <= most ? text : `${characters.slice(0, most - 1).join("")}…`;
}
