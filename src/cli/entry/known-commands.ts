import type { CommandEntry } from "./command-entry.ts";

/** A command as the list of all has it. */
export interface CommandListing {
  readonly name: string;
  /** One line for the list of commands. */
  readonly summary: string;
  /** Its options and body, with all that they need. */
  load(): Promise<CommandEntry>;
}

/** A command of which a command line knows the name, and the rest where it was named. */
export interface KnownCommand extends Pick<CommandListing, "name" | "summary"> {
  readonly entry: CommandEntry | null;
}

/** The commands, in the order in which people need them. */
const listings: readonly CommandListing[] = [
  {
    name: "archive",
    summary: "fetch runs from a gateway and prove them complete",
    load: async () => (await import("../commands/archive.ts")).archiveCommand,
  },
  {
    name: "runs",
    summary: "list the runs of an archive or of a gateway",
    load: async () => (await import("../commands/runs.ts")).runsCommand,
  },
  {
    name: "info",
    summary: "summarise an archive on one screen",
    load: async () => (await import("../commands/info.ts")).infoCommand,
  },
  {
    name: "query",
    summary: "run one SELECT over the archive",
    load: async () => (await import("../commands/query.ts")).queryCommand,
  },
  {
    name: "shell",
    summary: "query the archive interactively",
    load: async () => (await import("../commands/shell.ts")).shellCommand,
  },
  {
    name: "metrics",
    summary: "compute the figures of runs: returns, drawdowns, trades",
    load: async () => (await import("../commands/metrics.ts")).metricsCommand,
  },
  {
    name: "report",
    summary: "write a page of a run: figures, charts, trades",
    load: async () => (await import("../commands/report.ts")).reportCommand,
  },
  {
    name: "files",
    summary: "list the committed Parquet files of a table",
    load: async () => (await import("../commands/files.ts")).filesCommand,
  },
  {
    name: "export",
    summary: "write tables as Parquet, Arrow, DuckDB, NDJSON or CSV",
    load: async () => (await import("../commands/export.ts")).exportCommand,
  },
  {
    name: "notebook",
    summary: "write a Jupyter notebook on one run",
    load: async () => (await import("../commands/notebook.ts")).notebookCommand,
  },
  {
    name: "verify",
    summary: "check the archive without trusting what wrote it",
    load: async () => (await import("../commands/verify.ts")).verifyCommand,
  },
  {
    name: "accept",
    summary: "keep a table that is not proven as it is",
    load: async () => (await import("../commands/accept.ts")).acceptCommand,
  },
  {
    name: "diff",
    summary: "compare two archives",
    load: async () => (await import("../commands/diff.ts")).diffCommand,
  },
  {
    name: "reconcile",
    summary: "check a run's books against its rows",
    load: async () => (await import("../commands/reconcile.ts")).reconcileCommand,
  },
  {
    name: "rebuild",
    summary: "make Parquet again from segments, widen columns",
    load: async () => (await import("../commands/rebuild.ts")).rebuildCommand,
  },
  {
    name: "rm",
    summary: "remove runs from the archive",
    load: async () => (await import("../commands/rm.ts")).rmCommand,
  },
  {
    name: "gc",
    summary: "remove what no run of the archive needs any more",
    load: async () => (await import("../commands/gc.ts")).gcCommand,
  },
  {
    name: "init",
    summary: "write a job file for a gateway",
    load: async () => (await import("../commands/init.ts")).initCommand,
  },
  {
    name: "check",
    summary: "check job files before they run unattended",
    load: async () => (await import("../commands/check.ts")).checkCommand,
  },
  {
    name: "run",
    summary: "execute jobs once, as their files say",
    load: async () => (await import("../commands/run.ts")).runCommand,
  },
  {
    name: "schedule",
    summary: "execute jobs when their schedules say so",
    load: async () => (await import("../commands/schedule.ts")).scheduleCommand,
  },
  {
    name: "schema",
    summary: "print the JSON Schema of a document",
    load: async () => (await import("../commands/schema.ts")).schemaCommand,
  },
  {
    name: "profile",
    summary: "describe a gateway that differs",
    load: async () => (await import("../commands/profile.ts")).profileCommand,
  },
  {
    name: "notify",
    summary: "try everyone whom a job file tells",
    load: async () => (await import("../commands/notify.ts")).notifyCommand,
  },
  {
    name: "status",
    summary: "say how jobs and their archive stand",
    load: async () => (await import("../commands/status.ts")).statusCommand,
  },
  {
    name: "jobs",
    summary: "list the executions of jobs, or tell one in full",
    load: async () => (await import("../commands/jobs.ts")).jobsCommand,
  },
  {
    name: "serve",
    summary: "serve an archive as the gateway would",
    load: async () => (await import("../commands/serve.ts")).serveCommand,
  },
  {
    name: "token",
    summary: "make the line of a tokens file for a token",
    load: async () => (await import("../commands/token.ts")).tokenCommand,
  },
  {
    name: "simulate",
    summary: "serve a simulated, repeatable world as a gateway would",
    load: async () => (await import("../commands/simulate.ts")).simulateCommand,
  },
  {
    name: "completion",
    summary: "print a shell's completion script",
    load: async () => (await import("../commands/completion.ts")).completionCommand,
  },
];

/** All commands, of which those are loaded that a word of the command line may mean; all where no words are given. */
export async function knownCommands(argv?: readonly string[]): Promise<KnownCommand[]> {
  return await Promise.all(
    listings.map(async ({ name, summary, load }) => {
      const isNamed = argv === undefined || argv.includes(name);
      return { name, summary, entry: isNamed ? await load() : null };
    }),
  );
}
