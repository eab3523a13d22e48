import { styleText } from "node:util";

/** Colours a text that names a state, with or without blanks around it; returns any other text as it is. */
export type Painter = (text: string) => string;

const colours: ReadonlyMap<string, "green" | "yellow" | "red"> = new Map([
  ["COMPLETE", "green"],
  ["OPEN", "green"],
  ["ABSENT", "green"],
  ["QUARANTINED", "yellow"],
  ["UNVERIFIED", "yellow"],
  ["INCOMPLETE", "red"],
  ["pending", "yellow"],
  ["verified", "green"],
  ["sound", "green"],
  ["not compared", "yellow"],
  ["not archived", "yellow"],
  ["not proven", "yellow"],
  ["DAMAGED", "red"],
  ["failed", "red"],
  ["died", "red"],
  ["never", "red"],
  ["running", "green"],
  ["ok", "green"],
  ["internal error", "red"],
  ["wrong usage", "red"],
  ["gateway failed", "red"],
  ["incomplete", "red"],
  ["damaged", "red"],
  ["held by another", "yellow"],
  ["disk failed", "red"],
  ["deadline", "yellow"],
  ["refused", "red"],
  ["interrupted", "yellow"],
  ["stopped", "yellow"],
  ["wrong", "red"],
  ["not checked", "yellow"],
]);

/** Colours states, or nothing without colours. */
export function painter(hasColours: boolean): Painter {
  if (!hasColours) return (text) => text;
  return (text) => {
    const colour = colours.get(text.trim());
    return colour === undefined ? text : styleText(colour, text, { validateStream: false });
  };
}
