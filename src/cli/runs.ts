import { type Command, Option } from "commander";
import { z } from "zod";
import { alignedTable } from "../analytics/aligned-table.ts";
import { acceptedAside, attemptReason, attemptText } from "../archive/attempt-text.ts";
import type { Manifest } from "../archive/manifest.ts";
import { exit, RunvaultError, worstExit } from "../model/error.ts";
import { formatTime, wallClock } from "../model/time.ts";
import { instanceNotArchived, instanceNotFound } from "../model/usual-errors.ts";
import { visible } from "../model/visible-text.ts";
import { archiveOption, archiveShape } from "./archive-option.ts";
import { commandEntry } from "./command-entry.ts";
import { addGatewayOptions, gatewayOptionNames, gatewayShape, openGatewayFor } from "./gateway-options.ts";
import { exitsOf, tellFindings } from "./list-findings.ts";
import { grouped } from "./number-text.ts";
import { httpAddress } from "./option-values.ts";
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
      `
A table whose latest attempt went wrong is named below the list, with what is still shown of it, since when, and why.
With --json every table of an archived run has state, and of what is proven: proven (its state), proof, rows, setAside
and until (the ts_event up to which an OPEN table is proven, in nanoseconds); behindSince, error (a code) and reason say
what became of the latest attempts, null after one that was ok.

Examples:
  runvault runs
  runvault runs --gateway http://127.0.0.1:8080/api/v1 --json
`,
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
  if (values.gateway === undefined) {
    const manifests = await manifestsIn(values.archive, instanceId);
    const runs = listedOf(manifests);
    await session.print(session.json ? jsonOf(runs) : `${tableOf(runs)}${shortfallText(manifests)}`);
    return exit.done;
  }
  const { runs, status } = await gatewayRuns(values, instanceId, session);
  await session.print(session.json ? jsonOf(runs) : tableOf(runs));
  return status;
}

/** The manifests of an archive's runs. Throws `not_archived` where an instance is named of which it has none. */
async function manifestsIn(dir: string, instanceId: string | undefined): Promise<Manifest[]> {
  const { openArchive } = await import("../archive/archive.ts");
  const manifests = await (await openArchive(dir)).manifests();
  if (instanceId === undefined) return manifests;
  const own = manifests.filter((manifest) => manifest.instanceId === instanceId);
  if (own.length === 0) throw instanceNotArchived(instanceId);
  return own;
}

function listedOf(manifests: readonly Manifest[]): Listed[] {
  return manifests.map((manifest) => ({
    instanceId: manifest.instanceId,
    runId: manifest.runId,
    state: manifest.state,
    status: manifest.run.status,
    started: timeOrNull(manifest.run.started),
    ended: timeOrNull(manifest.run.ended),
    // what readers show
    rows: Object.values(manifest.tables).reduce(
      (sum, { proven }) => sum + (proven?.certificate?.rows ?? 0),
      0,
    ),
    generation: manifest.generation,
    tables: Object.fromEntries(
      Object.entries(manifest.tables).map(([name, { state, proven, attempt }]) => [
        name,
        {
          state,
          proven: proven?.state ?? null,
          proof: proven?.certificate?.proof ?? null,
          rows: proven?.certificate?.rows ?? null,
          setAside: proven?.certificate?.quarantined ?? null,
          until: proven?.certificate?.until ?? null,
          behindSince: attempt.behindSince,
          error: attempt.error?.code ?? null,
          reason: attemptReason({ proven, attempt }),
        },
      ]),
    ),
  }));
}

/** A line for each table that is behind, or proven without rows set aside; nothing where there is none. */
function shortfallText(manifests: readonly Manifest[]): string {
  const lines = manifests.flatMap((manifest) =>
    Object.entries(manifest.tables).flatMap(([name, table]) => {
      const aside = acceptedAside(table);
      const told = [
        attemptText(table),
        aside === 0 ? null : `rows set aside, as the operator accepted: ${aside}`,
      ];
      return told
        .filter((text) => text !== null)
        .map((text) => `${visible(`${formatRun(manifest)}  ${name}: ${text}`)}\n`);
    }),
  );
  return lines.length === 0 ? "" : `\n${lines.join("")}`;
}

async function gatewayRuns(
  values: z.output<typeof schema>,
  instanceId: string | undefined,
  session: Session,
): Promise<{ runs: Listed[]; status: number }> {
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
  const { firstOfMany, namedRuns, RunLists } = await loadLists();
  const lists = new RunLists(gateway, { finishedStatus: [], settled: wallClock });
  const only = instanceId === undefined ? undefined : [instanceId];
  const { instances, findings: all, unknown } = await namedRuns(lists, only, session.signal);
  const findings = firstOfMany(all);
  for (const unknownId of unknown) throw instanceNotFound(unknownId);
  tellFindings(
    findings.filter(({ error }) => error !== null),
    session,
  );
  const runs = instances.flatMap((instance) =>
    instance.runs.map(({ run }) => ({
      instanceId: run.instanceId,
      runId: run.runId,
      status: run.status,
      started: run.started === undefined ? null : formatTime(run.started),
      ended: run.ended === undefined ? null : formatTime(run.ended),
      final: run.final,
    })),
  );
  return { runs, status: worstExit(exitsOf(findings)) };
}

function jsonOf(runs: readonly Listed[]): string {
  return `${JSON.stringify({ runs }, null, 2)}\n`;
}

/** Loaded when a gateway is asked, so that listing an archive starts without it. */
async function loadLists() {
  const { namedRuns } = await import("../extract/named-runs.ts");
  const { RunLists } = await import("../extract/run-lists.ts");
  const { firstOfMany } = await import("../extract/first-of-many.ts");
  return { firstOfMany, namedRuns, RunLists };
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
