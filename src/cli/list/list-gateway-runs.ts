import { alignedTable } from "../../analytics/render/aligned-table.ts";
import { firstOfMany } from "../../extract/choose/first-of-many.ts";
import { namedRuns } from "../../extract/choose/named-runs.ts";
import { RunLists } from "../../extract/choose/run-lists.ts";
import { RunvaultError, worstExit } from "../../model/error.ts";
import { formatRun } from "../../model/run-argument.ts";
import type { RunRef } from "../../model/source.ts";
import { formatTime, wallClock } from "../../model/time.ts";
import { instanceNotFound } from "../../model/usual-errors.ts";
import { exitsOf, tellFindings } from "../archive/list-findings.ts";
import { type GatewayValues, openGatewayFor } from "../options/gateway-options.ts";
import { httpAddress } from "../options/option-values.ts";
import { fitColumns } from "../output/fit-columns.ts";
import { fitNames } from "../output/fit-names.ts";
import type { Session } from "../process/session.ts";

interface Values extends Omit<GatewayValues, "gateway"> {
  /** True: use RUNVAULT_GATEWAY. */
  readonly gateway: string | true;
  readonly wide: boolean;
}

interface ListedRun extends RunRef {
  readonly status: string;
  readonly started: string | null;
  readonly ended: string | null;
  readonly final: boolean;
}

/** Lists a gateway's runs, or those of one instance, and reports contradictions in its lists. */
export async function listGatewayRuns(
  instanceId: string | undefined,
  values: Values,
  session: Session,
): Promise<number> {
  await using gateway = await openGatewayFor({ ...values, gateway: addressOf(values, session) }, session);
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
  await session.print(
    session.json ? `${JSON.stringify({ runs }, null, 2)}\n` : textOf(runs, values.wide, session),
  );
  return worstExit(exitsOf(findings));
}

function addressOf({ gateway }: Values, session: Session): string {
  if (gateway !== true) return gateway;
  const { RUNVAULT_GATEWAY } = session.terminal.env;
  if (!RUNVAULT_GATEWAY) {
    throw new RunvaultError("invalid_argument", "--gateway has no address", {
      hint: "Give --gateway URL, or set RUNVAULT_GATEWAY.",
    });
  }
  const checked = httpAddress.safeParse(RUNVAULT_GATEWAY);
  if (checked.success) return checked.data;
  throw new RunvaultError(
    "invalid_argument",
    "RUNVAULT_GATEWAY (for --gateway) is an http:// or https:// address",
  );
}

function textOf(runs: readonly ListedRun[], wide: boolean, session: Session): string {
  if (runs.length === 0) return "no runs\n";
  const names = wide
    ? ["run", "status", "started", "ended", "final"]
    : ["run", "status", "started (UTC)", "ended (UTC)"];
  const time = (iso: string | null) => (wide ? iso : iso?.slice(0, 19).replace("T", " ")) ?? "";
  const [first = "", ...others] = names;
  const all = others.map((name, at) => ({
    name,
    cells: runs.map(
      ({ status, started, ended, final }) =>
        [status, time(started), time(ended), final ? "yes" : "no"][at] ?? "",
    ),
  }));
  const columns = wide ? all : fitColumns(all, session);
  const tableWith = (ids: readonly string[]) =>
    alignedTable(
      [first, ...columns.map(({ name }) => name)],
      ids.map((id, index) => [id, ...columns.map(({ cells }) => cells[index]!)]),
      [false, ...columns.map(() => false)],
    );
  const ids = runs.map(formatRun);
  return wide ? tableWith(ids) : fitNames(ids, tableWith, session);
}
