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
 * Holds the facts against those that a source gives by another way, such as a gateway's other transport: for each table
 * that the two differ in, an error. Rows may come between two questions, so only a difference that a second look shows,
 * too, counts. Empty where there is no other way; where it cannot be asked, `onWarning` hears why.
 *
 * `latest` are the facts within the bounds, asked for just now.
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
 * The facts of the whole run by the source's other way, where they are those that it gave before: then both ways agree,
 * and nothing has changed meanwhile. Null where they are not, or cannot be had.
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
    // requested again, and reported, where the two are compared
    return null;
  }
}

function bothOf(facts: StorageFacts | null, others: StorageFacts | null): TwoAnswers | null {
  return facts === null || others === null ? null : { facts, others };
}

/** The tables that the two do not say the same of; one that is left out has no rows. */
function differences({ facts, others }: TwoAnswers): TableName[] {
  return tableNames.filter((name) => textOf(facts.get(name)) !== textOf(others.get(name)));
}

function disagreement(facts: TableFacts | undefined, others: TableFacts | undefined): RunvaultError {
  return new RunvaultError(
    "unverified",
    `the gateway's transports disagree: its storage facts say ${textOf(facts)} over one and ${textOf(others)} over the other`,
    {
      hint: "Ask the gateway's operator which is right; --transport rest or --transport rpc uses one alone.",
    },
  );
}

function textOf(facts: TableFacts | undefined): string {
  if (facts === undefined || facts.rows === 0n) return "0 rows";
  return `${countText(facts.rows, "row")} from ${facts.first} to ${facts.last}`;
}
