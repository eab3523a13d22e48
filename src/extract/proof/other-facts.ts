import { RunvaultError } from "../../model/error.ts";
import { type TableName, tableNames } from "../../model/profile/table.ts";
import type { HistorySource, RunRef, StorageFacts, TableFacts } from "../../model/source.ts";
import { countText } from "../../model/text/plural.ts";
import type { TimeBounds } from "../../model/time.ts";

/** Both ways to request facts. */
type TwoWays = Pick<HistorySource, "facts" | "otherFacts">;

/** Two answers to the same question. */
interface TwoAnswers {
  readonly facts: StorageFacts;
  readonly others: StorageFacts;
}

/**
 * Compares the facts with those from a source's other way, such as a gateway's other transport. Returns an error for
 * each table in which they differ. Rows may arrive between two requests, so a difference counts only if a second look
 * shows it, too. Empty if there is no other way; if that cannot be asked, `onWarning` gets the reason.
 *
 * `latest` are the facts within the bounds, requested just now.
 */
export async function differingTables(
  source: TwoWays,
  run: RunRef,
  bounds: TimeBounds,
  latest: StorageFacts | null,
  onWarning: (text: string) => void,
  signal: AbortSignal,
): Promise<ReadonlyMap<TableName, RunvaultError>> {
  const errors = new Map<TableName, RunvaultError>();
  const other = () => source.otherFacts?.(run, bounds, signal) ?? null;
  try {
    const first = bothOf(latest, await other());
    if (first === null || differences(first).length === 0) return errors;
    const again = bothOf(await source.facts(run, bounds, signal), await other());
    if (again === null) return errors;
    const before = new Set(differences(first));
    for (const name of differences(again)) {
      if (before.has(name)) errors.set(name, disagreement(again.facts.get(name), again.others.get(name)));
    }
  } catch (thrown) {
    signal.throwIfAborted();
    const error = RunvaultError.from(thrown);
    if (!error.isGateways || error.scope === "job") throw error;
    onWarning(`the storage facts of REST and RPC could not be compared: ${error.message}`);
  }
  return errors;
}

/**
 * The facts of the whole run from the source's other way, if they are the same as before: then both ways agree,
 * and nothing has changed meanwhile. Null if they differ or are not available.
 */
export async function sameByOtherWay(
  source: TwoWays,
  run: RunRef,
  before: StorageFacts,
  signal: AbortSignal,
): Promise<StorageFacts | null> {
  try {
    const others = (await source.otherFacts?.(run, {}, signal)) ?? null;
    if (others === null || differences({ facts: before, others }).length > 0) return null;
    const isMarkedSame = [...before].every(
      ([name, { final, schemaFingerprint }]) =>
        others.get(name)?.final === final && others.get(name)?.schemaFingerprint === schemaFingerprint,
    );
    return isMarkedSame && others.size === before.size ? others : null;
  } catch {
    signal.throwIfAborted();
    // the comparison requests them again and reports the error
    return null;
  }
}

function bothOf(facts: StorageFacts | null, others: StorageFacts | null): TwoAnswers | null {
  return facts === null || others === null ? null : { facts, others };
}

/** The tables in which the two differ; a table that is left out has no rows. */
function differences({ facts, others }: TwoAnswers): TableName[] {
  return tableNames.filter((name) => textOf(facts.get(name)) !== textOf(others.get(name)));
}

function disagreement(facts: TableFacts | undefined, others: TableFacts | undefined): RunvaultError {
  return new RunvaultError(
    "unverified",
    `the gateway's transports disagree: its storage facts say ${textOf(facts)} over one and ${textOf(others)} over the other`,
    {
      hint: "Ask the gateway's operator which is right; --transport rest or --transport rpc uses only one.",
    },
  );
}

function textOf(facts: TableFacts | undefined): string {
  if (facts === undefined || facts.rows === 0n) return "0 rows";
  return `${countText(facts.rows, "row")} from ${facts.first} to ${facts.last}`;
}
