import { Option } from "commander";
import { z } from "zod";

/** `--allow-incomplete` of commands that read rows. */
export function allowIncompleteOption(): Option {
  return new Option(
    "--allow-incomplete",
    "show what the latest attempts fetched, proven or not, instead of what is proven",
  ).conflicts("strict");
}

/** `--strict` of commands that read rows. */
export function strictOption(): Option {
  return new Option(
    "--strict",
    "exit with 4 if a requested table has nothing proven, or its latest attempt failed",
  );
}

export const readerShape = {
  allowIncomplete: z.boolean().default(false),
  strict: z.boolean().default(false),
};
