import type { RunvaultError } from "../../model/error.ts";
import { exit } from "../../model/error.ts";
import type { FileFault } from "../../model/yaml/file-fault.ts";
import { type KeyPath, keyText } from "../../model/yaml/tree.ts";
import type { JobFile } from "../file/job-files.ts";

/** Something wrong with what a job file names, with the exit status that it leads to: none for a warning. */
export interface Finding {
  readonly fault: FileFault;
  readonly exit: number;
}

/** Something that would keep the job, or a part of it, from being done. */
export function wrong(
  file: JobFile,
  path: KeyPath,
  message: string,
  hint: string,
  status: number = exit.usage,
): Finding {
  return { fault: faultOf(file, "error", path, message, hint), exit: status };
}

/** Something that keeps nothing from being done, and is seldom meant. */
export function doubtful(file: JobFile, path: KeyPath, message: string, hint: string): Finding {
  return { fault: faultOf(file, "warning", path, message, hint), exit: exit.done };
}

/** The same of an error; its hint is about options of commands unless it is known to be about a job file. */
export function failed(file: JobFile, path: KeyPath, error: RunvaultError, hint: string): Finding {
  return wrong(file, path, error.message, hint, error.exit);
}

function faultOf(file: JobFile, level: FileFault["level"], path: KeyPath, message: string, hint: string) {
  return file.fault(level, path, `${keyText(path)}: ${message}`, hint);
}
