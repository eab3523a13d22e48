import { cronText } from "./cron-text.ts";
import { comments, headLines, runWords, stopSeconds, type UnitPlan, variableLines } from "./unit-plan.ts";

/** Lines for a user's crontab. */
export function crontab(plan: UnitPlan): string {
  const { schedule, times } = plan;
  const names = variableLines(plan);
  const environment =
    names.length === 0
      ? []
      : [
          "",
          `FILL IN: ${environmentFile(plan)}, chmod 600, with a line NAME='value' for each variable of the file:`,
          ...names.map((name) => `  ${name}`),
        ];
  return [
    comments(
      ...headLines("cron", plan),
      "",
      `Lines for \`crontab -e\` of the user who owns the archive. The file's schedule: ${schedule.cron} in ${schedule.timezone}.`,
      "CRON_TZ is cronie's (Red Hat, Arch) and applies to all lines below it. The cron of Debian and Ubuntu ignores it:",
      "there the machine's own zone must be the schedule's; otherwise use systemd.",
      "flock: a start during an execution ends at once, with 6. cron neither makes up for missed starts nor retries:",
      "the next start does the rest. cron mails all output, which with -q is only errors.",
      ...environment,
    ),
    `CRON_TZ=${schedule.timezone}\n`,
    `SHELL=/bin/sh\n`,
    `${cronText(times)} ${cronEscaped(shellLine(plan))}\n`,
  ].join("");
}

function environmentFile({ name }: UnitPlan): string {
  return `/etc/runvault/${name}.env`;
}

function shellLine(plan: UnitPlan): string {
  const { file, seconds, program } = plan;
  const run = [...program, ...runWords(file.path, plan), "-q"].map(word).join(" ");
  const timeout = seconds.longest === null ? "" : `timeout -k ${stopSeconds(plan)} ${seconds.longest} `;
  const sleep =
    seconds.jitter === 0 ? "" : `sleep $(( $(od -An -N4 -tu4 /dev/urandom) % ${seconds.jitter + 1} )); `;
  const environment =
    file.variables.length === 0 ? "" : `set -a; . ${environmentFile(plan)} || exit 2; set +a; `;
  return `${sleep}${environment}exec flock -n -E 6 ${word(file.path)} ${timeout}${run}`;
}

/** Quotes a word for a shell, without a backslash before a percent sign: cron cannot express both. */
function word(text: string): string {
  if (/^[\w@+=:,./-]+$/.test(text)) return text;
  return `'${text.replaceAll("'", "'\\''").replaceAll("\\%", "\\''%")}'`;
}

/** cron reads a percent sign as a line feed. */
function cronEscaped(line: string): string {
  return line.replaceAll("%", "\\%");
}
