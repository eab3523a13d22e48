import { type Command, Option } from "commander";
import { z } from "zod";
import { unitKinds } from "../../pipeline/units/unit-kind.ts";
import { commandEntry } from "../entry/command-entry.ts";
import { nonEmpty, wholeNumber } from "../options/option-values.ts";
import { setOption, setShape } from "../options/set-option.ts";
import type { Session } from "../process/session.ts";

/** `HOST:PORT`; IPv6 in brackets. */
const listenAddress = z
  .string()
  .regex(/^(?:\[[0-9a-fA-F:.]+\]|[^:\s[\]]+):\d{1,5}$/, "must be HOST:PORT, such as 127.0.0.1:9464")
  .transform((text) => {
    const at = text.lastIndexOf(":");
    return { host: text.slice(0, at).replace(/^\[|\]$/g, ""), port: Number(text.slice(at + 1)) };
  })
  .refine(({ port }) => port < 65_536, "must have a port below 65536");

const schema = z.object({
  ...setShape,
  files: z.array(nonEmpty).min(1),
  print: z.enum(unitKinds).optional(),
  parallel: wholeNumber(1, 64).default(1),
  listen: listenAddress.optional(),
});

/** `runvault schedule FILE…` */
export const scheduleCommand = commandEntry({
  schema,
  howToGoOn: "What runs is asked to end, and continued by its next start.",
  declare: (command: Command) =>
    command
      .description(
        "Executes job files on their schedules, each execution in a separate process, until it is stopped. With " +
          "--print it prints the same schedule for another scheduler, with the file's own cron, zone, jitter, deadline, grace and " +
          "catch_up: units of systemd, lines for a crontab, a Kubernetes CronJob or an Airflow DAG. Comments in it say " +
          "what to fill in.",
      )
      .argument("<files...>", "job files; one for --print")
      .option("--parallel <n>", "files that are executed at the same time", "1")
      .option("--listen <address>", "HOST:PORT for /health and /metrics (default: none)")
      .addOption(
        new Option("--print <scheduler>", "print the schedule for this scheduler").choices(unitKinds),
      )
      .addOption(setOption())
      .addHelpText(
        "after",
        `
Environment variables that the file names must be set, as for a run. Their values are never
printed.

SIGHUP reads the files again, as does each start. SIGTERM and Ctrl-C end what runs within its grace.

Examples:
  runvault schedule pipelines/nightly.yaml --listen 127.0.0.1:9464
  runvault schedule --print systemd nightly.yaml
  runvault schedule --print kubernetes nightly.yaml > nightly-cronjob.yaml
`,
      ),
  run: schedule,
});

async function schedule(values: z.output<typeof schema>, session: Session): Promise<number> {
  const { print, files, set } = values;
  if (print === undefined) {
    const { scheduleFiles } = await import("../pipeline/schedule-files.ts");
    return await scheduleFiles(values, session);
  }
  const { printUnit } = await import("../pipeline/print-unit.ts");
  return await printUnit(print, { files, set }, session);
}
