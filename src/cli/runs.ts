import { type Command, Option } from "commander";
import { z } from "zod";
import { alignedTable } from "../analytics/aligned-table.ts";
import { exit, RunvaultError } from "../model/error.ts";
import { formatTime } from "../model/time.ts";
import { archiveOption, archiveShape } from "./archive-option.ts";
import { commandEntry } from "./command-entry.ts";
import { addGatewayOptions, gatewayOptionNames, gatewayShape, openGatewayFor } from "./gateway-options.ts";
import { httpAddress } from "./option-values.ts";
import { grouped } from "./progress.ts";
import { formatRun, parseInstance } from "./run-argument.ts";
import type { Session } from "./session.ts";

const schema = z.object({
  ...archiveShape,
  ...gatewayShape,
  gateway: z.union([httpAddress, z.literal(true)], "is an http:// or https:// address").optional(),
  instance: z.string().optional(),
});

/** `runvault runs` */
export const runsCommand = commandEntry({
  schema,
  howToGoOn: "Run the same command again.",
  unused: ({ gateway }) => (gateway === undefined ? gatewayOptionNames : []),
  declare: (command: Command) =>
    addGatewayOptions(
      command
        .name("runs")
        .summary("list the runs of an archive or of a gateway")
        .description(
          "Lists the runs of the archive with their states, or, with --gateway, those a gateway names.",
        )
        .argument("[instance]", "only runs of this instance")
        .addOption(archiveOption())
        .addOption(
          new Option("--gateway [url]", "list a gateway's runs; without URL that of RUNVAULT_GATEWAY"),
        )
        .option("--json", 'an object {"runs": […]}'),
      false,
    ).addHelpText(
      "after",
      "\nExamples:\n  runvault runs\n  runvault runs --gateway http://127.0.0.1:8080/api/v1 --json\n",
    ),
  run: listRuns,
});

interface Listed {
  readonly instanceId: string;
  readonly runId: string;
  readonly [key: string]: unknown;
}

async function listRuns(values: z.output<typeof schema>, session: Session): Promise<number> {
  const instanceId = values.instance === undefined ? undefined : parseInstance(values.instance);
  const runs =
    values.gateway === undefined
      ? await archivedRuns(values.archive, instanceId)
      : await gatewayRuns(values, instanceId, session);
  await session.terminal.out(session.json ? `${JSON.stringify({ runs }, null, 2)}\n` : tableOf(runs));
  return exit.done;
}

async function archivedRuns(dir: string, instanceId: string | undefined): Promise<Listed[]> {
  const { openArchive } = await import("../archive/archive.ts");
  const manifests = await (await openArchive(dir)).manifests();
  return manifests
    .filter((manifest) => instanceId === undefined || manifest.instanceId === instanceId)
    .map((manifest) => ({
      instanceId: manifest.instanceId,
      runId: manifest.runId,
      state: manifest.state,
      status: manifest.run.status,
      started: timeOrNull(manifest.run.started),
      ended: timeOrNull(manifest.run.ended),
      rows: Object.values(manifest.tables).reduce((sum, table) => sum + (table?.certificate?.rows ?? 0), 0),
      generation: manifest.generation,
      tables: Object.fromEntries(
        Object.entries(manifest.tables).map(([name, { state, certificate, error }]) => [
          name,
          {
            state,
            proof: certificate?.proof ?? null,
            rows: certificate?.rows ?? null,
            error: error?.code ?? null,
          },
        ]),
      ),
    }));
}

async function gatewayRuns(
  values: z.output<typeof schema>,
  instanceId: string | undefined,
  session: Session,
): Promise<Listed[]> {
  if (values.gateway === true && !session.terminal.env.RUNVAULT_GATEWAY) {
    throw new RunvaultError("invalid_argument", "--gateway is given without an address", {
      hint: "Give --gateway URL, or set RUNVAULT_GATEWAY.",
    });
  }
  const given = values.gateway === true ? session.terminal.env.RUNVAULT_GATEWAY : values.gateway;
  const checked = httpAddress.safeParse(given);
  if (!checked.success) {
    throw new RunvaultError(
      "invalid_argument",
      "RUNVAULT_GATEWAY (for --gateway) is an http:// or https:// address",
    );
  }
  await using gateway = await openGatewayFor({ ...values, gateway: checked.data }, session);
  const runsOf = await loadRunsOf();
  return (await runsOf(gateway, instanceId, session.signal)).map((run) => ({
    instanceId: run.instanceId,
    runId: run.runId,
    status: run.status,
    started: run.started === undefined ? null : formatTime(run.started),
    ended: run.ended === undefined ? null : formatTime(run.ended),
    final: run.final,
  }));
}

/** Loaded when a gateway is asked, so that listing an archive starts without it. */
async function loadRunsOf() {
  const { listRuns } = await import("../extract/run-knowledge.ts");
  return listRuns;
}

function tableOf(runs: readonly Listed[]): string {
  if (runs.length === 0) return "no runs\n";
  const columns = ["state", "status", "started", "ended", "rows", "generation"].filter(
    (name) => name in runs[0]!,
  );
  const rows = runs.map((run) => [
    formatRun(run),
    ...columns.map((name) => {
      const value = run[name];
      return name === "rows" ? grouped(Number(value)) : value === null ? "" : String(value);
    }),
  ]);
  const right = ["run", ...columns].map((name) => name === "rows" || name === "generation");
  return alignedTable(["run", ...columns], rows, right);
}

function timeOrNull(ns: string | null): string | null {
  return ns === null ? null : formatTime(BigInt(ns));
}
