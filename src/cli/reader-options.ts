import { Option } from "commander";
import { z } from "zod";

/** `--allow-incomplete` of commands that read rows. */
export function allowIncompleteOption(): Option {
  return new Option(
    "--allow-incomplete",
    "show what the latest attempts brought, proven or not, in place of what is proven",
  ).conflicts("strict");
}

/** `--strict` of commands that read rows. */
export function strictOption(): Option {
  return new Option(
    "--strict",
    "exit status 4 where nothing is proven of a table asked for, or its latest attempt went wrong",
  );
}

export const readerShape = {
  allowIncomplete: z.boolean().default(false),
  strict: z.boolean().default(false),
};
