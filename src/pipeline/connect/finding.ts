import type { RunvaultError } from "../../model/error.ts";
import { exit } from "../../model/error.ts";
import type { FileFault } from "../../model/yaml/file-fault.ts";
import { type KeyPath, keyText } from "../../model/yaml/tree.ts";
import type { JobFile } from "../file/job-files.ts";

/** A problem with something that a job file names, and its exit status: none for a warning. */
export interface Finding {
  readonly fault: FileFault;
  readonly exit: number;
}

/** A problem that stops the job or a part of it. */
export function wrong(
  file: JobFile,
  path: KeyPath,
  message: string,
  hint: string,
  status: number = exit.usage,
): Finding {
  return { fault: faultOf(file, "error", path, message, hint), exit: status };
}

/** Something that stops nothing but is rarely intended. */
export function doubtful(file: JobFile, path: KeyPath, message: string, hint: string): Finding {
  return { fault: faultOf(file, "warning", path, message, hint), exit: exit.done };
}

/** The same for an error. Its hint may name command line options, unless it was written for job files. */
export function failed(file: JobFile, path: KeyPath, error: RunvaultError, hint: string): Finding {
  return wrong(file, path, error.message, hint, error.exit);
}

function faultOf(file: JobFile, level: FileFault["level"], path: KeyPath, message: string, hint: string) {
  return file.fault(level, path, `${keyText(path)}: ${message}`, hint);
}
