import { resolve } from "node:path";
import { exit, RunvaultError } from "../../model/error.ts";
import { readJobFiles } from "../../pipeline/file/job-files.ts";
import { podFolder } from "../../pipeline/units/kubernetes-cronjob.ts";
import { printUnits } from "../../pipeline/units/print-units.ts";
import type { UnitKind } from "../../pipeline/units/unit-kind.ts";
import { unitPlan } from "../../pipeline/units/unit-plan.ts";
import type { Session } from "../process/session.ts";
import { faultText } from "./check-report.ts";

interface Values {
  readonly files: readonly string[];
  readonly set: readonly string[];
}

/** Prints a job file's schedule for another scheduler, or the file's errors. */
export async function printUnit(kind: UnitKind, { files, set }: Values, session: Session): Promise<number> {
  const [file = ""] = files;
  if (files.length > 1) {
    throw new RunvaultError("invalid_argument", "--print takes one job file", {
      hint: "Run it once for each file.",
    });
  }
  const read = await readJobFiles([file], {
    env: session.terminal.env,
    set,
    purpose: "units",
    // in a container the file and its relative paths are elsewhere
    ...(kind === "kubernetes" ? { folder: podFolder } : {}),
  });
  const found = [...read.faults, ...read.files.flatMap(({ faults }) => faults)];
  const job = read.files[0]?.job ?? null;
  if (job === null || read.faults.length > 0) {
    for (const fault of found.filter(({ level }) => level === "error")) session.say(faultText(fault));
    return exit.usage;
  }
  const plan = unitPlan(job, { program: ownProgram(), set, now: new Date() });
  await session.print(printUnits(kind, plan));
  return exit.done;
}

/** The words that start this command line. Node has its full path, because schedulers use another PATH. */
function ownProgram(): readonly string[] {
  return [process.execPath, resolve(process.argv[1] ?? "runvault")];
}
