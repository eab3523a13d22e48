import { countText } from "../../model/text/plural.ts";
import { visible } from "../../model/text/visible-text.ts";
import { instancePatterns } from "./instance-patterns.ts";
import type { GatewayLook } from "./look-at-gateway.ts";
import { yamlText } from "./yaml-text.ts";

/** What a new job file is about. Values are as the file is to have them, `yamlText` or `yamlVariable`. */
export interface DraftSettings {
  readonly name: string;
  /** What commands call the file; for its comments. */
  readonly file: string;
  readonly url: string;
  /** How to reach the gateway beside its address, such as `transport: rpc`, by key. */
  readonly reach: readonly (readonly [key: string, value: string])[];
  /** Such as `{ env: GATEWAY_TOKEN }`; null where the gateway answered without. */
  readonly token: string | null;
  readonly budget: string;
  readonly archive: string;
  readonly timezone: string;
  /** Whether `timezone` is that of this machine, and not what stands for one that has no name. */
  readonly isOwnZone: boolean;
  /** Variables that the file names, with what each holds. */
  readonly variables: readonly (readonly [name: string, meaning: string])[];
}

/** A job file with comments, for what a gateway says of itself. */
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
    `  budget: ${budget} # how hard the gateway may be worked`,
    "  # keeps: 14d # how long the gateway remembers a finished run: those it forgets soon then come first",
    ...statusLines(look),
    "",
    `archive: ${archive} # made where there is none`,
    "",
    "runs:",
    ...instanceLines(look),
    "  status: [finished, failed, growing] # growing: what there is so far, the rest another night",
    "  # ended_within: 30d # leaves older runs alone, unless the archive holds them unproven",
    '  # exclude: ["*/2022-01-01-001"] # runs that are never taken, INSTANCE/RUN, with * and ?',
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
    `  timezone: ${yamlText(timezone)} # ${isOwnZone ? "that of the machine this was written on" : "an IANA name, such as Europe/Berlin"}`,
    "  jitter: 10m # put off by up to this, so that not all jobs of a site begin at once",
    "  deadline: 5h # what is left then is for the next night",
    "  catch_up: 20h # a missed start is made up for, once, up to this late",
    "",
    "# Who is told. The addresses stay in the environment, for whoever knows them can use them.",
    "# `runvault check FILE --test-notify` tries everyone.",
    "# notify:",
    "#   heartbeat: { url_env: HEARTBEAT_URL } # GET of URL/start, then of URL or URL/fail",
    "#   webhook: { url_env: ALERT_URL, on: [worse, mended] }",
    "#   slack: { url_env: SLACK_URL } # or teams, with the address of a workflow's webhook",
    "#   mail: { url_env: MAIL_URL, from: runvault@example.com, to: [quant@example.com] } # smtp://…",
    "#   command: [/usr/local/bin/page, --team, quant] # gets the message on standard input; no shell",
    "#   remind: 7d # trouble that goes on is told again after this",
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
    [`runvault check ${shown} --connect`, "is all there that it needs, and when does it start?"],
    [`runvault run ${shown} --dry-run`, "what it would fetch now; nothing is written"],
    [`runvault run ${shown}`, "once, now"],
    [`runvault schedule ${shown}`, "as its schedule says; --print is for other schedulers"],
  ] as const;
  const width = Math.max(...commands.map(([command]) => command.length));
  const named = Math.max(0, ...variables.map(([name]) => name.length));
  return [
    "# yaml-language-server: $schema=./pipeline.schema.json",
    "#",
    "# Archives a gateway's runs each night and proves that nothing is missing. Written by `runvault init`",
    "# from what the gateway said of itself; it is yours to change.",
    "#",
    ...commands.map(([command, meaning]) => `#   ${command.padEnd(width)}  # ${meaning}`),
    "#",
    ...(variables.length === 0
      ? []
      : [
          "# These variables have to be set wherever it runs:",
          ...variables.map(([name, meaning]) => `#   ${name.padEnd(named)}  ${meaning}`),
          "#",
        ]),
    "# Relative paths begin at the folder of this file. For editors that complete keys and underline mistakes,",
    "# put the schema beside it: runvault schema pipeline > pipeline.schema.json",
  ];
}

function instanceLines({ instances, leftOut }: GatewayLook): readonly string[] {
  const patterns = instancePatterns(instances);
  const notes = leftOut
    .slice(0, 3)
    .map((id) => `  # left out, for no gateway can be asked for such a name: ${visible(id)}`);
  if (patterns === null) {
    const examples = instances.slice(0, 3).map(({ instanceId }) => visible(instanceId.slice(0, 40)));
    const which =
      instances.length === 0
        ? "the gateway has none yet; this takes those to come"
        : `all ${instances.length}, and those to come: ${examples.join(", ")}, …`;
    return [...notes, `  instances: ["*"] # ${which}`];
  }
  return [
    ...notes,
    `  # What the gateway has now (${countText(instances.length, "instance")}); ["*"] also takes those to come. A name without * and ?`,
    "  # has to exist.",
    "  instances:",
    ...patterns.map(({ pattern, remark }) => `    - ${yamlText(pattern)} # ${remark}`),
  ];
}

function statusLines({ unknownStatuses }: GatewayLook): readonly string[] {
  if (unknownStatuses.length === 0) return [];
  const words = unknownStatuses.slice(0, 5).map((word) => visible(yamlText(word.slice(0, 40))));
  return [`  # finished_status: [${words.join(", ")}] # those of its words that mean that a run has ended`];
}

function recheckLine({ hasVersions }: GatewayLook): string {
  if (hasVersions === true)
    return "recheck: 7d # only for runs without a storage_version; this gateway's have one";
  if (hasVersions === false)
    return "recheck: 7d # this gateway has no storage_version: finished runs are asked about again after this";
  return "recheck: 7d # where the gateway has no storage_version: finished runs are asked about again after this";
}

function requireLine({ hasFacts, countsGrowing }: GatewayLook): string {
  if (hasFacts === true && !countsGrowing)
    return "require: any # this gateway counts the rows of a whole run alone: those still going on have no counts to agree with";
  if (hasFacts === true)
    return "require: counted # the gateway counts its rows, so counts have to agree; any asks for less";
  if (hasFacts === false) return "require: any # this gateway does not count its rows; counted would fail";
  return "require: any # counted, where the gateway counts its rows (storage facts)";
}
