import { Option } from "commander";
import { z } from "zod";

export const defaultArchive = "archive";

/** `--archive DIR`, over RUNVAULT_ARCHIVE, over `archive` in the current folder. */
export function archiveOption(): Option {
  return new Option("--archive <dir>", "the archive folder").env("RUNVAULT_ARCHIVE").default(defaultArchive);
}

export const archiveShape = { archive: z.string().min(1, "is empty") };
