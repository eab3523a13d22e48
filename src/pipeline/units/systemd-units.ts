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

/** The folder of an administrator's units. */
const folder = "/etc/systemd/system";

/** A service and its timer, each after a line with its file, as `systemctl cat` shows them. */
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
    `# at most ${attempts} attempts for each start`,
    `StartLimitIntervalSec=${Math.floor(shortestInterval(plan.schedule.cron, plan.now) * 0.8)}`,
    `StartLimitBurst=${attempts}`,
    "",
    "[Service]",
    "Type=oneshot",
    "# FILL IN: the user who owns the archive and can read the job file and its secrets",
    "User=runvault",
    ...environmentLines(plan),
    "# the program on the machine that printed this",
    `ExecStart=${execText([...program, ...runWords(file.path, plan)])}`,
    "# unreachable, locked, disk full (3, 6, 7) or a crash: retried. Not if a retry does not help (1, 2, 4, 5, 9),",
    `# at the deadline (${exit.deadline}: the next start continues), or when somebody stopped it (130, 143)`,
    "Restart=on-failure",
    `RestartPreventExitStatus=${[...notTriedAgain, exit.interrupted, exit.terminated].join(" ")}`,
    `RestartSec=${again.pauseSeconds}`,
    seconds.longest === null
      ? "# the file has no deadline"
      : "# deadline, grace and a margin: it ends by itself before, unless it hangs",
    `TimeoutStartSec=${seconds.longest ?? "infinity"}`,
    "# the file's grace and a margin, then the rest is killed",
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
      ? "# makes up once for a start missed while the machine was off, however late: systemd has no limit like catch_up"
      : "# does not make up for a missed start",
    `Persistent=${isPersistent}`,
    "",
    "[Install]",
    "WantedBy=timers.target",
    "",
  ].join("\n");
}

/** A command line for systemd, which replaces no variables in the program's own path. */
function execText([program = "", ...args]: readonly string[]): string {
  return [pathWord(program), ...args.map((word) => pathWord(word).replaceAll("$", "$$$$"))].join(" ");
}

/** Escapes quotes, backslashes and specifiers in a word. */
function pathWord(word: string): string {
  const escaped = word.replaceAll("%", "%%").replaceAll("\\", "\\\\").replaceAll('"', '\\"');
  return /^[\w@+=:,./%$-]+$/.test(word) ? escaped : `"${escaped}"`;
}
