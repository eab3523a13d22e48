import { countText } from "../../model/text/plural.ts";
import { visible } from "../../model/text/visible-text.ts";
import { instancePatterns } from "./instance-patterns.ts";
import type { GatewayLook } from "./look-at-gateway.ts";
import { yamlText } from "./yaml-text.ts";

/** Settings of a new job file. Values are as they will stand in the file, from `yamlText` or `yamlVariable`. */
export interface DraftSettings {
  readonly name: string;
  /** The file's name in commands, for its comments. */
  readonly file: string;
  readonly url: string;
  /** How to reach the gateway besides its address, such as `transport: rpc`, by key. */
  readonly reach: readonly (readonly [key: string, value: string])[];
  /** Such as `{ env: GATEWAY_TOKEN }`; null if the gateway answered without one. */
  readonly token: string | null;
  readonly budget: string;
  readonly archive: string;
  readonly timezone: string;
  /** Whether `timezone` is this machine's own zone, and not a stand-in because it has no name. */
  readonly isOwnZone: boolean;
  /** Variables that the file names, with the meaning of each. */
  readonly variables: readonly (readonly [name: string, meaning: string])[];
}

/** A job file with comments, for a gateway as it describes itself. */
export function draftText(settings: DraftSettings, look: GatewayLook): string {
  const { name, token, reach, archive, url, budget, timezone, isOwnZone } = settings;
  const lines = [
    ...headOf(settings),
    "version: 1",
    `name: ${yamlText(name)} # in metrics, records and messages; each job file has its own`,
    "",
    "gateway:",
    `  url: ${url}`,
    ...(token === null
      ? ["  # token: { file: /run/secrets/gateway } # or { env: NAME }; this gateway answered without one"]
      : [`  token: ${token} # or { env: NAME }, or { file: PATH } with chmod 600; never the token itself`]),
    ...reach.map(([key, value]) => `  ${key}: ${value}`),
    `  budget: ${budget} # limits on the load for the gateway`,
    "  # keeps: 14d # how long the gateway keeps a finished run; those about to expire then come first",
    ...statusLines(look),
    "",
    `archive: ${archive} # created if missing`,
    "",
    "runs:",
    ...instanceLines(look),
    "  status: [finished, failed, growing] # growing: the rows so far; the rest another night",
    "  # ended_within: 30d # leaves older runs alone, unless the archive holds them unproven",
    '  # exclude: ["*/2022-01-01-001"] # runs to leave out, INSTANCE/RUN, with * and ?',
    "",
    "tables: all # or a list, such as [fills, orders]; always whole tables",
    recheckLine(look),
    requireLine(look),
    "",
    "after:",
    "  verify: changed # nothing, changed, or deep: down to the rows",
    "  # exports:",
    "  #   - { tables: [fills, equity], last: 7d, format: duckdb, out: exports/week.duckdb }",
    "",
    "schedule:",
    '  cron: "15 2 * * *" # minute, hour, day of the month, month, day of the week: each night at 02:15',
    `  timezone: ${yamlText(timezone)} # ${isOwnZone ? "from the machine that wrote this file" : "an IANA name, such as Europe/Berlin"}`,
    "  jitter: 10m # delays each start by a random time up to this, so that jobs do not all start at once",
    "  deadline: 5h # the next night does the rest",
    "  catch_up: 20h # make up for a missed start, once, if at most this late",
    "",
    "# Notifications. The addresses stay in the environment, because anyone who knows them can use them.",
    "# `runvault check FILE --test-notify` tests them.",
    "# notify:",
    "#   heartbeat: { url_env: HEARTBEAT_URL } # GET of URL/start, then of URL or URL/fail",
    "#   webhook: { url_env: ALERT_URL, on: [worse, mended] }",
    "#   slack: { url_env: SLACK_URL } # or teams, with the address of a workflow's webhook",
    "#   mail: { url_env: MAIL_URL, from: runvault@example.com, to: [quant@example.com] } # smtp://…",
    "#   command: [/usr/local/bin/page, --team, quant] # gets the message on standard input; no shell",
    "#   remind: 7d # continuing trouble is reported again after this",
    "",
    "# metrics: { textfile: /var/lib/node_exporter/runvault.prom } # or { pushgateway: URL }",
    "",
    "keep: { jobs: 90d } # records of executions: `runvault jobs` lists them",
  ];
  return `${lines.join("\n")}\n`;
}

function headOf({ file, variables }: DraftSettings): readonly string[] {
  const shown = visible(file);
  const commands = [
    [`runvault check ${shown} --connect`, "check all that it needs, and print when it starts"],
    [`runvault run ${shown} --dry-run`, "what it would fetch now; nothing is written"],
    [`runvault run ${shown}`, "once, now"],
    [`runvault schedule ${shown}`, "run it on its schedule; --print is for other schedulers"],
  ] as const;
  const width = Math.max(...commands.map(([command]) => command.length));
  const named = Math.max(0, ...variables.map(([name]) => name.length));
  return [
    "# yaml-language-server: $schema=./pipeline.schema.json",
    "#",
    "# Archives a gateway's runs each night and proves that nothing is missing. Written by `runvault init`",
    "# from the gateway's own answers; edit it as you like.",
    "#",
    ...commands.map(([command, meaning]) => `#   ${command.padEnd(width)}  # ${meaning}`),
    "#",
    ...(variables.length === 0
      ? []
      : [
          "# These variables must be set wherever it runs:",
          ...variables.map(([name, meaning]) => `#   ${name.padEnd(named)}  ${meaning}`),
          "#",
        ]),
    "# Relative paths start at the folder of this file. For editors that complete keys and underline mistakes,",
    "# put the schema next to it: runvault schema pipeline > pipeline.schema.json",
  ];
}

function instanceLines({ instances, leftOut }: GatewayLook): readonly string[] {
  const patterns = instancePatterns(instances);
  const notes = leftOut
    .slice(0, 3)
    .map((id) => `  # left out, because no gateway can be asked for such a name: ${visible(id)}`);
  if (patterns === null) {
    const examples = instances.slice(0, 3).map(({ instanceId }) => visible(instanceId.slice(0, 40)));
    const which =
      instances.length === 0
        ? "the gateway has none yet; this matches all future ones"
        : `all ${instances.length}, and all future ones: ${examples.join(", ")}, …`;
    return [...notes, `  instances: ["*"] # ${which}`];
  }
  return [
    ...notes,
    `  # What the gateway has now (${countText(instances.length, "instance")}); ["*"] also matches future ones. A name without * and ?`,
    "  # must exist.",
    "  instances:",
    ...patterns.map(({ pattern, remark }) => `    - ${yamlText(pattern)} # ${remark}`),
  ];
}

function statusLines({ unknownStatuses }: GatewayLook): readonly string[] {
  if (unknownStatuses.length === 0) return [];
  const words = unknownStatuses.slice(0, 5).map((word) => visible(yamlText(word.slice(0, 40))));
  return [`  # finished_status: [${words.join(", ")}] # choose its words for a run that has ended`];
}

function recheckLine({ hasVersions }: GatewayLook): string {
  if (hasVersions === true)
    return "recheck: 7d # only for runs without a storage_version; this gateway's have one";
  if (hasVersions === false)
    return "recheck: 7d # this gateway has no storage_version: finished runs are checked again after this";
  return "recheck: 7d # without storage_version, finished runs are checked again after this";
}

function requireLine({ hasFacts, countsGrowing }: GatewayLook): string {
  if (hasFacts === true && !countsGrowing)
    return "require: any # this gateway counts only whole runs: growing ones have no counts to compare with";
  if (hasFacts === true)
    return "require: counted # the gateway counts its rows, so counts must agree; any is weaker";
  if (hasFacts === false) return "require: any # this gateway does not count its rows; counted would fail";
  return "require: any # use counted if the gateway counts its rows (storage facts)";
}
