import { exit } from "../../model/error.ts";
import { calendarLines } from "./calendar-lines.ts";
import { shortestInterval } from "./shortest-interval.ts";
import {
  again,
  comments,
  headLines,
  notTriedAgain,
  runWords,
  stopSeconds,
  type UnitPlan,
  variableLines,
} from "./unit-plan.ts";

/** Where units of an administrator are. */
const folder = "/etc/systemd/system";

/** A service and its timer, each behind a line with its file, as `systemctl cat` shows them. */
export function systemdUnits(plan: UnitPlan): string {
  const unit = `runvault-${plan.name}`;
  return [
    comments(
      ...headLines("systemd", plan),
      "",
      "Two files: the lines with a path say where each belongs. To write both:",
      `  runvault schedule --print systemd FILE | awk '/^# \\/etc\\//{f=$2} f{print > f}'`,
      `  systemctl daemon-reload && systemctl enable --now ${unit}.timer`,
    ),
    `# ${folder}/${unit}.service\n${serviceText(plan)}`,
    `# ${folder}/${unit}.timer\n${timerText(plan)}`,
  ].join("\n");
}

function serviceText(plan: UnitPlan): string {
  const { file, name, seconds, program } = plan;
  const mounts = (["archive", "scratch"] as const).flatMap((key) =>
    file.job[key] === undefined || file.isFromEnvironment(key) ? [] : [pathWord(file.job[key])],
  );
  const attempts = again.times + 1;
  return [
    "[Unit]",
    `Description=runvault job ${name}`,
    "Wants=network-online.target",
    "After=network-online.target",
    ...(mounts.length === 0 ? [] : [`RequiresMountsFor=${mounts.join(" ")}`]),
    `# ${attempts} attempts for each start at most; the next start counts anew`,
    `StartLimitIntervalSec=${Math.floor(shortestInterval(plan.schedule.cron, plan.now) * 0.8)}`,
    `StartLimitBurst=${attempts}`,
    "",
    "[Service]",
    "Type=oneshot",
    "# FILL IN: the user who owns the archive, and reads the job file and its secrets",
    "User=runvault",
    ...environmentLines(plan),
    "# the program as it is on the machine on which this was printed",
    `ExecStart=${execText([...program, ...runWords(file.path, plan)])}`,
    "# out of reach, locked, disk full (3, 6, 7) or a crash: tried again. Not where that changes nothing (1, 2, 4, 5, 9),",
    `# at the deadline (${exit.deadline}: the next start goes on there), or when somebody stopped it (130, 143)`,
    "Restart=on-failure",
    `RestartPreventExitStatus=${[...notTriedAgain, exit.interrupted, exit.terminated].join(" ")}`,
    `RestartSec=${again.pauseSeconds}`,
    seconds.longest === null
      ? "# the file has no deadline"
      : "# deadline, grace and a little: it ends by itself before, unless it hangs",
    `TimeoutStartSec=${seconds.longest ?? "infinity"}`,
    "# the grace of the file and a little, then what is left is killed",
    `TimeoutStopSec=${stopSeconds(plan)}`,
    "KillMode=mixed",
    "",
  ].join("\n");
}

function environmentLines(plan: UnitPlan): readonly string[] {
  const names = variableLines(plan);
  if (names.length === 0) return [];
  return [
    "# FILL IN: this file, chmod 600, with a line NAME=value for each variable that the job file names:",
    ...names.map((name) => `#   ${name}`),
    `EnvironmentFile=/etc/runvault/${plan.name}.env`,
  ];
}

function timerText(plan: UnitPlan): string {
  const { name, schedule, seconds, now } = plan;
  const lines = calendarLines(schedule, now);
  const isPersistent = seconds.catchUp > 0;
  return [
    "[Unit]",
    `Description=starts of runvault job ${name}`,
    "",
    "[Timer]",
    `# cron: ${schedule.cron} in ${schedule.timezone}`,
    ...lines.map((line) => `OnCalendar=${line}`),
    "AccuracySec=1s",
    `RandomizedDelaySec=${seconds.jitter}`,
    isPersistent
      ? "# a start missed while the machine was off is made up for, once, however late: systemd knows no limit to catch_up"
      : "# a missed start is not made up for",
    `Persistent=${isPersistent}`,
    "",
    "[Install]",
    "WantedBy=timers.target",
    "",
  ].join("\n");
}

/** A command line as systemd reads it back: of the program's own path it replaces no variables. */
function execText([program = "", ...args]: readonly string[]): string {
  return [pathWord(program), ...args.map((word) => pathWord(word).replaceAll("$", "$$$$"))].join(" ");
}

/** A word with its quotes, backslashes and specifiers as they are. */
function pathWord(word: string): string {
  const escaped = word.replaceAll("%", "%%").replaceAll("\\", "\\\\").replaceAll('"', '\\"');
  return /^[\w@+=:,./%$-]+$/.test(word) ? escaped : `"${escaped}"`;
}
