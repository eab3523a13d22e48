import { Option } from "commander";
import { defaultArchive } from "./default-archive.ts";
import { nonEmpty } from "./option-values.ts";

/** `--archive DIR`, else RUNVAULT_ARCHIVE, else `archive` in the current folder. */
export function archiveOption(): Option {
  return new Option("--archive <dir>", "the archive folder").env("RUNVAULT_ARCHIVE").default(defaultArchive);
}

export const archiveShape = { archive: nonEmpty };

/** `--scratch DIR` of commands that write, else RUNVAULT_SCRATCH. */
export function scratchOption(): Option {
  return new Option(
    "--scratch <dir>",
    "folder for rows fetched but not yet committed and for half-written files, instead of the archive's own " +
      "pending/ and staging/; may be on another disk and shared by archives",
  ).env("RUNVAULT_SCRATCH");
}

export const scratchShape = { scratch: nonEmpty.optional() };
