import { z } from "zod";

const must = "must be a field path, such as price or instrument.symbol, or a list of names if one has a dot";
const name = z.string({ error: "must be the name of a field" }).min(1, "must not be empty");

/** Names with dots between them, none empty. A `?` at the end is refused: a draft left it as an open guess. */
export const dottedPattern = /^(?!.*\?$)[^.\s](?:[^.]*[^.\s])?(?:\.[^.\s](?:[^.]*[^.\s])?)*$/;

export const dottedPath = z
  .string({ error: must })
  .regex(dottedPattern, must)
  .transform((text) => text.split("."));

/** Where a value is in an object: `instrument.symbol`, or `[instrument, "symbol.code"]`. */
export const fieldPathSchema = z.union([dottedPath, z.array(name).min(1, must)], { error: must });

/** Where a list is; no names if the answer itself is the list. */
export const listPathSchema = z.union([dottedPath, z.array(name)], {
  error: `${must}; [] if the answer itself is the list`,
});

/** A path in a profile's notation: dotted if possible. */
export function pathText(path: readonly string[]): string | readonly string[] {
  const dotted = path.join(".");
  const isPlain = dottedPattern.test(dotted) && dotted.split(".").length === path.length;
  return isPlain ? dotted : [...path];
}
