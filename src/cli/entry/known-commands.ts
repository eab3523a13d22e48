import type { CommandEntry } from "./command-entry.ts";

/** A command in the list of all. */
export interface CommandListing {
  /** Two words for a subcommand. */
  readonly name: string;
  /** At most twelve words. */
  readonly summary: string;
  /** Loads its options and body; null for a command that only has subcommands. */
  readonly load: (() => Promise<CommandEntry>) | null;
}

/** A command's name, and the rest if the command line may mean it. */
export interface KnownCommand extends Pick<CommandListing, "name" | "summary"> {
  /** Heading in the list. */
  readonly group: string;
  readonly entry: CommandEntry | null;
}

/** The commands under the headings of `--help`, in the order in which people need them. */
const listings: Readonly<Record<string, readonly CommandListing[]>> = {
  Try: [
    {
      name: "demo",
      summary: "archive simulated runs, leave a page and a notebook",
      load: async () => (await import("../commands/demo.ts")).demoCommand,
    },
    {
      name: "simulate",
      summary: "serve simulated runs as a gateway would",
      load: async () => (await import("../commands/simulate.ts")).simulateCommand,
    },
    {
      name: "init",
      summary: "write a job file for a gateway",
      load: async () => (await import("../commands/init.ts")).initCommand,
    },
  ],
  Archive: [
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
      name: "verify",
      summary: "check the archive against its hashes, or against the gateway",
      load: async () => (await import("../commands/verify.ts")).verifyCommand,
    },
    {
      name: "rm",
      summary: "remove runs from the archive",
      load: async () => (await import("../commands/rm.ts")).rmCommand,
    },
    {
      name: "gc",
      summary: "remove files that no run needs any more",
      load: async () => (await import("../commands/gc.ts")).gcCommand,
    },
  ],
  Read: [
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
      name: "serve",
      summary: "serve an archive on the gateway's interface",
      load: async () => (await import("../commands/serve.ts")).serveCommand,
    },
    {
      name: "serve token",
      summary: "create a token for `serve --tokens`",
      load: async () => (await import("../commands/token.ts")).tokenCommand,
    },
  ],
  Analyse: [
    {
      name: "metrics",
      summary: "compute returns, drawdowns and trade figures of runs",
      load: async () => (await import("../commands/metrics.ts")).metricsCommand,
    },
    {
      name: "report",
      summary: "write an HTML page of a run: figures, charts, trades",
      load: async () => (await import("../commands/report.ts")).reportCommand,
    },
    {
      name: "reconcile",
      summary: "check a run's books against its rows",
      load: async () => (await import("../commands/reconcile.ts")).reconcileCommand,
    },
  ],
  Jobs: [
    {
      name: "check",
      summary: "check job files before they run unattended",
      load: async () => (await import("../commands/check.ts")).checkCommand,
    },
    {
      name: "run",
      summary: "run job files now",
      load: async () => (await import("../commands/run.ts")).runCommand,
    },
    {
      name: "status",
      summary: "show how jobs and their archive stand",
      load: async () => (await import("../commands/status.ts")).statusCommand,
    },
    {
      name: "jobs",
      summary: "list the executions of jobs, or show one",
      load: async () => (await import("../commands/jobs.ts")).jobsCommand,
    },
    {
      name: "schedule",
      summary: "run job files when their schedules say so",
      load: async () => (await import("../commands/schedule.ts")).scheduleCommand,
    },
  ],
  More: [
    {
      name: "maintain",
      summary: "accept unproven tables, compare archives, rebuild Parquet",
      load: null,
    },
    {
      name: "maintain accept",
      summary: "accept a table that is not proven",
      load: async () => (await import("../commands/accept.ts")).acceptCommand,
    },
    {
      name: "maintain diff",
      summary: "compare two archives",
      load: async () => (await import("../commands/diff.ts")).diffCommand,
    },
    {
      name: "maintain rebuild",
      summary: "make Parquet again from segments, widen columns",
      load: async () => (await import("../commands/rebuild.ts")).rebuildCommand,
    },
    {
      name: "profile",
      summary: "describe a gateway that differs from the usual one",
      load: async () => (await import("../commands/profile.ts")).profileCommand,
    },
    {
      name: "schema",
      summary: "print the JSON Schema of a document",
      load: async () => (await import("../commands/schema.ts")).schemaCommand,
    },
    {
      name: "completion",
      summary: "print a shell's completion script",
      load: async () => (await import("../commands/completion.ts")).completionCommand,
    },
  ],
};

/** All commands; loads those that the command line may mean, or all if no line is given. */
export async function knownCommands(argv?: readonly string[]): Promise<KnownCommand[]> {
  const all = Object.entries(listings).flatMap(([group, listed]) =>
    listed.map((listing) => ({ group, ...listing })),
  );
  return await Promise.all(
    all.map(async ({ load, ...known }) => {
      const isNamed = argv === undefined || known.name.split(" ").every((word) => argv.includes(word));
      return { ...known, entry: isNamed && load !== null ? await load() : null };
    }),
  );
}
