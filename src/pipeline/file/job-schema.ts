import { resolve } from "node:path";
import { z } from "zod";
import {
  decimalForms,
  type ExportFormat,
  exportFormatOf,
  exportFormats,
  partitions,
} from "../../analytics/export/export-format.ts";
import { jobNamePattern } from "../../archive/layout.ts";
import { transportChoices } from "../../gateway/transport-choice.ts";
import { type TableName, tableNames } from "../../model/profile/table.ts";
import { zoneFault } from "../../model/text/time-zone.ts";
import { cronFault } from "./cron.ts";
import {
  address,
  age,
  anyOf,
  byteRate,
  byteSize,
  gatewayAddress,
  headerName,
  instanceGlob,
  type JobPlace,
  mailAddress,
  oneOf,
  oneRun,
  placedValues,
  positiveNumber,
  runGlob,
  type SecretPlace,
  someOf,
  text,
  trueOrFalse,
  waitTime,
  waitTimeOrNone,
  wholeNumber,
  words,
} from "./job-values.ts";

/** The supported version of job files. */
export const jobVersion = 1;

/** A job with all defaults filled in, absolute paths and parsed values. */
export type Job = z.output<ReturnType<typeof jobSchema>>;

/** Those in `notify` that get a message over the network, in the order in which they are reported. */
export const hooks = ["webhook", "slack", "teams", "mail"] as const;

/** How a job reconciles what it committed. */
export type JobReconciliation = NonNullable<Job["after"]["reconcile"]>;

/** The reports of a job. */
export type JobReports = NonNullable<Job["after"]["reports"]>;

/** One export of a job. */
export type JobExport = Job["after"]["exports"][number];

/** When a job starts, and for how long. */
export type JobSchedule = NonNullable<Job["schedule"]>;

const tableWords = tableNames as [TableName, ...TableName[]];

function key<T extends z.ZodType>(schema: T, description: string, example?: unknown): T {
  return schema.meta({ description, ...(example === undefined ? {} : { examples: [example] }) }) as T;
}

/** For the JSON Schema: exactly one of these keys. */
function exactlyOne(...names: string[]) {
  return { oneOf: names.map((name) => ({ required: [name] })) };
}

function map<T extends z.core.$ZodLooseShape>(shape: T) {
  return z.strictObject(shape, { error: "must be a map of keys and values" });
}

const tables = z.union([z.literal("all"), someOf(oneOf(tableWords), "tables")], {
  error: `must be all, or a list of ${tableNames.join(", ")}`,
});

/** The schema of job files, from which the check, the type, the JSON Schema and the reference are all made. */
export function jobSchema(place: JobPlace) {
  const { path, modulePath, metricsFile, setVariable, addressVariable, mailVariable } = placedValues(place);

  const token = map({
    file: key(
      path.optional(),
      "file with nothing but the token; read again for each execution",
      "/run/secrets/gateway",
    ),
    env: key(setVariable.optional(), "environment variable with the token", "GATEWAY_TOKEN"),
  })
    .check(...oneGiven("file", "env", "must be either { file: PATH } or { env: NAME }"))
    .transform(
      ({ file, env }): SecretPlace =>
        file === undefined ? { kind: "env", name: env ?? "" } : { kind: "file", file },
    )
    .meta({
      description: "where the token is, if the gateway wants one; never the token itself",
      examples: [{ file: "/run/secrets/gateway" }],
      ...exactlyOne("file", "env"),
    });

  const budget = map({
    rps: key(
      positiveNumber(0.001, 1_000_000).default(20),
      "requests started per second, retries included",
      20,
    ),
    answers: key(wholeNumber(1, 256).default(4), "row answers open at the same time", 4),
    retries: key(wholeNumber(0, 1000).default(5), "how often a failed request is tried again", 5),
    connect: key(waitTime.prefault("10s"), "longest wait for a connection", "10s"),
    headers: key(waitTime.prefault("60s"), "longest wait for an answer to begin", "60s"),
    idle: key(waitTime.prefault("60s"), "longest silence within an answer", "60s"),
    document: key(waitTime.prefault("2m"), "longest time for a whole list or document to arrive", "2m"),
    min_rate: key(
      byteRate.optional(),
      "minimum bytes of rows per second; a slower table is left for the next execution",
      "64KB",
    ),
    bytes: key(
      byteSize.optional(),
      "maximum size of row text fetched by one execution; no limit by default",
      "20GB",
    ),
  });

  const tls = map({
    ca: key(path.optional(), "CA certificates to trust instead of the system's (PEM)", "ca.pem"),
    cert: key(path.optional(), "client certificate (PEM); needs key", "client.pem"),
    key: key(path.optional(), "its private key (PEM); needs cert", "client.key"),
  })
    .check(
      z.refine(({ cert, key }) => (cert === undefined) === (key === undefined), {
        error: "needs both cert and key for a client certificate, and has only one of them",
        when: isMap,
      }),
    )
    .meta({
      description: "certificates for https",
      examples: [{ cert: "client.pem", key: "client.key" }],
      dependentRequired: { cert: ["key"], key: ["cert"] },
    });

  const gateway = map({
    url: key(
      gatewayAddress,
      "base address, ending in /api/v1; without user and password",
      "https://gateway.example.com/api/v1",
    ),
    source_alias: key(
      anyOf(gatewayAddress, "addresses").prefault([]),
      "other addresses of this gateway, under which runs may be archived already",
      ["http://10.0.0.7:8080/api/v1"],
    ),
    transport: key(
      oneOf(transportChoices).default("auto"),
      "protocol; auto finds out what the gateway offers",
      "auto",
    ),
    adapter: key(
      modulePath.optional(),
      "module to use instead of the built-in client (docs/library.md)",
      "./my-gateway.ts",
    ),
    token: token.optional(),
    token_header: key(
      headerName.optional(),
      "header for the token; by default Authorization, as a bearer token",
      "X-Api-Key",
    ),
    tls: tls.optional(),
    profile: key(path.optional(), "profile of a gateway that differs (docs/profiles.md)", "acme.yaml"),
    budget: key(budget.prefault({}), "limits on the load for the gateway", { rps: 20, answers: 4 }),
    compression: key(
      trueOrFalse.default(true),
      "ask for compressed answers, except from this machine itself",
      true,
    ),
    accept_unframed: key(
      trueOrFalse.default(false),
      "accept uncompressed rows without Content-Length or chunks, although a truncated answer would look complete",
      false,
    ),
    keeps: key(
      age.optional(),
      "how long the gateway keeps a finished run; runs about to expire are archived first and reported",
      "14d",
    ),
    finished_status: key(
      anyOf(words, "words").prefault([]),
      "the gateway's own words for a run that has ended, besides FINISHED and FAILED",
      ["COMPLETED", "STOPPED"],
    ),
  });

  const runs = map({
    instances: key(
      someOf(instanceGlob, "instances").prefault(["*"]),
      "instances to archive; * stands for any characters, ? for one; a name without them must exist",
      ["alpha-*", "beta-2"],
    ),
    status: key(
      someOf(oneOf(["finished", "failed", "growing"]), "statuses").default(["finished", "failed", "growing"]),
      "which runs to archive: finished, failed, or growing (still going on)",
      ["finished", "failed"],
    ),
    ended_within: key(
      age.optional(),
      "only runs that ended at most this long ago, and older ones that the archive holds unproven",
      "30d",
    ),
    exclude: key(
      anyOf(runGlob, "INSTANCE/RUN patterns").prefault([]),
      "runs to leave out, INSTANCE/RUN, with * and ?",
      ["*/2022-01-01-001"],
    ),
  });

  const oneExport = map({
    tables: key(tables.default("all"), "tables to export: all, or a list", ["fills", "equity"]),
    symbols: key(
      someOf(words, "symbols").optional(),
      "only rows of these symbols; tables without symbols are exported whole",
      ["BTC-PERP"],
    ),
    last: key(age.optional(), "only rows no older than this at the start of the execution", "7d"),
    format: key(
      oneOf(Object.keys(exportFormats) as [ExportFormat, ...ExportFormat[]]).optional(),
      "format of the files; by default from the ending of out",
      "duckdb",
    ),
    out: key(
      path,
      "file for one table or duckdb, else a folder; replaced completely when its rows change",
      "/data/week.duckdb",
    ),
    partition: key(oneOf(partitions).optional(), "run: one file per table and run", "run"),
    decimals: key(
      oneOf(decimalForms).default("exact"),
      "prices, quantities and money as decimals or doubles",
      "double",
    ),
    with_analytics: key(
      trueOrFalse.default(false),
      "duckdb: also round_trips, matches and positions, and the macros of `runvault query`, with the tables that they read",
      true,
    ),
    instruments: key(
      path.optional(),
      "file that describes the instruments of with_analytics; docs/instruments.md has its form",
      "instruments.yaml",
    ),
  }).transform((value, context) => {
    const { partition, tables: chosen } = value;
    const isOneTable = partition === undefined && chosen !== "all" && chosen.length === 1;
    const ending = exportFormatOf(value.out);
    const format = value.format ?? (isOneTable || ending === "duckdb" ? ending : null);
    const raise = (key: string, message: string, hint: string) => {
      context.issues.push({ code: "custom", path: [key], message, params: { hint }, input: value });
      return z.NEVER;
    };
    if (format === null) {
      const why = isOneTable
        ? "is not clear from the ending of out"
        : "is needed, because out is a folder here";
      return raise("format", why, `Give it, one of ${Object.keys(exportFormats).join(", ")}.`);
    }
    if (format === "duckdb" && partition !== undefined) {
      return raise(
        "partition",
        "cannot be combined with duckdb, which is one file",
        "Leave it out, or give another format.",
      );
    }
    if (value.with_analytics && format !== "duckdb")
      return raise("with_analytics", "needs a database", "Write `format: duckdb`, or leave it out.");
    const part = (["symbols", "last"] as const).find((one) => value[one] !== undefined);
    if (value.with_analytics && part !== undefined) {
      const hint = `Leave out ${part}: trades of a part of the rows would be wrong.`;
      return raise("with_analytics", `cannot be combined with ${part}`, hint);
    }
    return { ...value, format };
  });

  const reconciliation = map({
    tolerance: key(
      text(
        'must be an amount of zero or more, in quotes, such as "0.000000001"',
        /^\d{1,20}(?:\.\d{1,18})?$/,
        (value) => value,
      ).optional(),
      "largest difference that is not a break; by default 0, for inverse contracts 0.000000001 a fill",
      "0.000000001",
    ),
    accounting: key(
      oneOf(["auto", "spot", "margin"]).default("auto"),
      "how cash and position_value are kept; auto finds out",
      "margin",
    ),
    fill_order: key(
      oneOf(["auto", "key", "trade_id"]).default("auto"),
      "order of fills with the same timestamp; auto finds out",
      "trade_id",
    ),
    instruments: key(
      path.optional(),
      "facts about instruments that rows lack (docs/instruments.md)",
      "instruments.yaml",
    ),
  });

  const reports = map({
    out: key(path, "folder of the pages; existing pages are replaced", "/data/reports"),
    fill: key(
      trueOrFalse.default(false),
      "whether days without rows repeat the last equity, for markets that never close",
      true,
    ),
    instruments: key(
      path.optional(),
      "file that describes the instruments; docs/instruments.md has its form",
      "instruments.yaml",
    ),
  });

  const after = map({
    verify: key(
      oneOf(["nothing", "changed", "deep"]).default("changed"),
      "what to check afterwards: nothing, the files of runs that changed, or (deep) their rows, too",
      "deep",
    ),
    reconcile: key(
      reconciliation.optional(),
      "reconcile the runs that this execution committed; the job fails if books do not balance",
      { instruments: "instruments.yaml" },
    ),
    reports: key(
      reports.optional(),
      "write a page for each run that this execution committed, like `runvault report`: OUT/INSTANCE/RUN.html",
      { out: "/data/reports" },
    ),
    exports: key(
      z.array(oneExport, { error: "must be a list of exports" }).prefault([]),
      "files to export after the commit",
      [{ tables: ["fills"], out: "/data/fills.parquet" }],
    ),
  });

  const schedule = map({
    cron: key(
      text(
        "must have five fields: minute, hour, day of the month, month, day of the week",
        /^\s*\S+(?:\s+\S+){4}\s*$/,
        (value, raise) => {
          const fault = cronFault(value);
          if (fault !== null) raise(fault, { hint: "For example `15 2 * * *`: each day at 02:15." });
          // on one line, because other schedulers get it in a comment
          return value.trim().split(/\s+/).join(" ");
        },
      ),
      "when it starts: minute, hour, day of the month, month, day of the week",
      "15 2 * * *",
    ),
    timezone: key(
      text("must be the name of a time zone, such as Europe/Berlin", /^[A-Za-z]/, (value, raise) => {
        const fault = zoneFault(value);
        if (fault !== null) raise(fault, { near: "zones" });
        return value;
      }),
      "IANA time zone of cron",
      "Europe/Berlin",
    ),
    jitter: key(
      waitTimeOrNone.prefault("0s"),
      "delays each start by a random time up to this, so that jobs do not all begin at once",
      "10m",
    ),
    deadline: key(
      waitTime.optional(),
      "how long an execution may take; the next one continues; no limit by default",
      "5h",
    ),
    grace: key(
      waitTimeOrNone.prefault("5m"),
      "how long work under way may take to finish after the deadline or SIGTERM",
      "5m",
    ),
    catch_up: key(
      waitTimeOrNone.prefault("0s"),
      "make up for a missed start, once, if it is at most this late; 0s: never",
      "20h",
    ),
  });

  const on = key(
    someOf(oneOf(["worse", "mended"]), "worse and mended").default(["worse", "mended"]),
    "which changes to report",
    ["worse"],
  );
  const hookUrl = key(addressVariable, "environment variable that holds the address", "ALERT_URL");

  const notify = map({
    heartbeat: map({
      url_env: key(addressVariable, "environment variable that holds the address", "HEARTBEAT_URL"),
    })
      .optional()
      .meta({
        description:
          "GET of URL/start when an execution begins, URL when it succeeded, URL/fail when it failed",
        examples: [{ url_env: "HEARTBEAT_URL" }],
      }),
    webhook: map({
      url_env: hookUrl,
      on,
    })
      .optional()
      .meta({
        description: "POST of a JSON document when something changed",
        examples: [{ url_env: "ALERT_URL" }],
      }),
    slack: map({ url_env: hookUrl, on })
      .optional()
      .meta({
        description: "the same as a message in Slack, by an incoming webhook",
        examples: [{ url_env: "SLACK_URL" }],
      }),
    teams: map({ url_env: hookUrl, on })
      .optional()
      .meta({
        description: "the same as a card in Microsoft Teams, by a workflow's webhook",
        examples: [{ url_env: "TEAMS_URL" }],
      }),
    mail: map({
      url_env: key(
        mailVariable,
        "environment variable that holds the mail server, smtp://USER:PASSWORD@HOST:PORT; smtps:// is TLS from the start",
        "MAIL_URL",
      ),
      from: key(mailAddress, "address of the sender", "runvault@example.com"),
      to: key(someOf(mailAddress, "mail addresses"), "addresses that get it", ["quant@example.com"]),
      on,
    })
      .optional()
      .meta({
        description: "the same as a mail",
        examples: [{ url_env: "MAIL_URL", from: "runvault@example.com", to: ["quant@example.com"] }],
      }),
    command: key(
      z
        .array(words, { error: "must be a list of a program and its arguments" })
        .min(1, "must not be an empty list")
        .transform(([program = "", ...rest]) => [
          program.includes("/") ? resolve(place.folder, program) : program,
          ...rest,
        ])
        .optional(),
      "program with its arguments, without a shell, that gets the same document on standard input; a / in its name makes " +
        "it relative to this file's folder",
      ["/usr/local/bin/page", "--team", "quant"],
    ),
    remind: key(age.prefault("7d"), "how long until continuing trouble is reported again", "7d"),
    unreachable_after: key(
      waitTime.prefault("15m"),
      "after how long a gateway outage is reported while the execution still waits",
      "15m",
    ),
  });

  const metrics = map({
    textfile: key(
      metricsFile.optional(),
      "file for node_exporter's textfile collector; must end in .prom",
      "/var/lib/node_exporter/runvault.prom",
    ),
    pushgateway: key(
      address.optional(),
      "base address of a Pushgateway",
      "http://pushgateway.example.com:9091",
    ),
  })
    .check(
      ...oneGiven("textfile", "pushgateway", "must be either { textfile: PATH } or { pushgateway: URL }"),
    )
    .meta({
      description: "where to write the figures of each execution",
      examples: [{ textfile: "/var/lib/node_exporter/runvault.prom" }],
      ...exactlyOne("textfile", "pushgateway"),
    });

  return map({
    version: key(
      z.literal(jobVersion, {
        error: `must be ${jobVersion}, the version of job files that this runvault reads`,
      }),
      "version of the format of job files",
      jobVersion,
    ),
    name: key(
      z.string({ error: nameMust }).regex(jobNamePattern, nameMust),
      "name of the job in metrics, records and messages: 1 to 52 lower-case letters, digits and hyphens",
      "nightly",
    ),
    gateway: key(gateway, "where runs come from", { url: "https://gateway.example.com/api/v1" }),
    archive: key(path, "folder of the archive; created if missing", "/data/archive"),
    scratch: key(
      path.optional(),
      "folder for unfinished work, if not in the archive itself",
      "/fast/scratch",
    ),
    run: key(
      oneRun.optional(),
      "one run, INSTANCE/RUN, instead of runs; INSTANCE/latest is the run that began last when an execution begins",
      "alpha-1/2022-01-01-001",
    ),
    runs: key(runs.optional(), "which runs to archive", { instances: ["alpha-*"] }),
    tables: key(tables.default("all"), "tables to archive: all, or a list", ["fills", "orders"]),
    empty: key(
      anyOf(oneOf(tableWords), "tables").prefault([]),
      "tables that are meant to have no rows, if the gateway cannot prove it",
      ["factors"],
    ),
    parallel_runs: key(wholeNumber(1, 64).default(4), "runs fetched at the same time", 4),
    per_run: key(waitTime.prefault("1h"), "longest time for one run; the next execution continues it", "1h"),
    settle: key(waitTimeOrNone.prefault("60s"), "minimum age of rows taken from a growing run", "60s"),
    recheck: key(
      age.prefault("7d"),
      "without storage versions: how long after its last check a run is checked again",
      "7d",
    ),
    require: key(
      oneOf(["any", "counted", "hashed"]).default("any"),
      "weakest proof that counts: any, counted (by storage facts) or hashed (by row checksums)",
      "counted",
    ),
    final_pass: key(
      oneOf(["rows", "counts"]).default("rows"),
      "how a run that became final is compared with the gateway: by its rows, or by counts alone",
      "counts",
    ),
    widen: key(
      oneOf(["auto", "never"]).optional(),
      "auto widens a column that a value does not fit, in the whole archive; with never its table is INCOMPLETE; by default " +
        "auto for a new archive, never for an existing one",
      "auto",
    ),
    after: key(after.prefault({}), "what to do after archiving", { verify: "changed" }),
    schedule: key(schedule.optional(), "when it starts; without one only `runvault run` starts it", {
      cron: "15 2 * * *",
      timezone: "Europe/Berlin",
    }),
    notify: key(notify.prefault({}), "where to report changes", { webhook: { url_env: "ALERT_URL" } }),
    metrics: metrics.optional(),
    keep: key(
      map({
        jobs: key(age.prefault("90d"), "how long to keep records of executions", "90d"),
        runs: key(
          age.optional(),
          "COMPLETE runs that ended longer ago are removed after each execution, as by `runvault rm --older-than`, and " +
            "not fetched again",
          "400d",
        ),
        disk: key(
          byteSize.optional(),
          "most that the archive may hold (MB or GB, powers of 1024): the oldest COMPLETE runs of the job are removed, and " +
            "not fetched again",
          "200GB",
        ),
      }).prefault({}),
      "how long to keep runs and records; without runs and disk no run is removed",
      { jobs: "90d" },
    ),
  })
    .check(...oneGiven("runs", "run", "needs runs, or run for a single one"), removesOfRuns)
    .meta({
      title: "runvault job file",
      description: "A job that archives runs from a gateway, unattended.",
      ...exactlyOne("runs", "run"),
    });
}

const nameMust =
  "must be 1 to 52 lower-case letters, digits and hyphens, with a letter or digit at both ends";

/** A job of one run would fetch again what it removes, and INSTANCE/latest has been every run of the instance. */
const removesOfRuns = z.refine<object>(
  (value: { readonly run?: unknown; readonly keep?: { readonly runs?: unknown; readonly disk?: unknown } }) =>
    value.run === undefined || (value.keep?.runs === undefined && value.keep?.disk === undefined),
  {
    path: ["keep"],
    error: "removes runs only of jobs with runs",
    params: { hint: "Leave out runs and disk, or use runs instead of run." },
    when: isMap,
  },
);

function isMap({ value }: z.core.ParsePayload): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Requires exactly one of two keys, whatever else is wrong with the map. */
function oneGiven(one: string, other: string, error: string) {
  const has = (value: object, key: string) => Object.hasOwn(value, key);
  return [
    z.refine<object>((value) => has(value, one) || has(value, other), { error, when: isMap }),
    z.refine<object>((value) => !(has(value, one) && has(value, other)), {
      path: [other],
      error: `cannot be combined with ${one}`,
      params: { hint: "Leave out one of the two." },
      when: isMap,
    }),
  ] as const;
}
