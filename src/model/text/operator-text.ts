import { stripVTControlCharacters } from "node:util";
import { createScrubber, type Scrubber } from "./scrubber.ts";

/** Longer text says nothing more, and fills the screen, the log and the manifest. */
const longestText = 500;

/** A gateway's message for operators, beside an error's code. */
export interface OperatorWords {
  readonly message?: string | undefined;
  readonly hint?: string | undefined;
}

/**
 * A gateway's message and hint, made safe to show after our own words: one line of at most 500 characters without
 * control characters, terminal commands or secrets. Empty if there are none.
 */
export function operatorText({ message, hint }: OperatorWords, scrubber: Scrubber): string {
  const [said, advice] = [message, hint].map((text) => scrubber.scrub(oneLine(text ?? "")));
  if (!said && !advice) return "";
  return `: ${cutTo(longestText, [said, advice && `(its hint: ${advice})`].filter(Boolean).join(" "))}`;
}

/** More of a row than its ids and first values says nothing. */
const longestRow = 300;
/** Cut before cleaning, because the rest may be cut further. */
const mostOfRow = 4096;

/** A gateway's row, made safe to show in a message: like `operatorText`, in 300 characters. */
export function rowText(line: string): string {
  return cutTo(longestRow, createScrubber().scrub(oneLine(line.slice(0, mostOfRow))));
}

function oneLine(text: string): string {
  return (
    stripVTControlCharacters(text)
      // invisible characters may hide a secret from the search, or reverse the text after them
      .replace(/\p{Cf}+/gu, "")
      .replace(/[\p{Cc}\p{Cs}\p{Z}]+/gu, " ")
      .trim()
  );
}

function cutTo(most: number, text: string): string {
  const characters = [...text];
  return characters.length <= most ? text : `${characters.slice(0, most - 1).join("")}…`;
}
