import { Option } from "commander";
import { nonEmpty } from "./option-values.ts";

export const defaultArchive = "archive";

/** `--archive DIR`, over RUNVAULT_ARCHIVE, over `archive` in the current folder. */
export function archiveOption(): Option {
  return new Option("--archive <dir>", "the archive folder").env("RUNVAULT_ARCHIVE").default(defaultArchive);
}

export const archiveShape = { archive: nonEmpty };
