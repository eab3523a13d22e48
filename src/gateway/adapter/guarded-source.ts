import { z } from "zod";
import { RunvaultError } from "../../model/error.ts";
import { isTableName } from "../../model/profile/table.ts";
import type { HistorySource, RowRequest, StorageFacts } from "../../model/source.ts";
import { int64Max, int64Min } from "../../model/time.ts";
import type { Gateway } from "../gateway.ts";
import { requireExactRun, requireInstance, requireRows } from "../request-checks.ts";

const id = z.string().min(1);
const time = z.bigint().min(int64Min).max(int64Max);
const instanceEntries = z.array(z.looseObject({ instanceId: id, runIds: z.array(id) }));
const runEntries = z.array(
  z.looseObject({
    instanceId: id,
    runId: id,
    status: z.enum(["RUNNING", "FINISHED", "FAILED"]),
    started: time,
    ended: time.optional(),
    final: z.boolean(),
    storageVersion: z.string().optional(),
  }),
);
const count = z.bigint().min(0n);
const tableFacts = z.looseObject({
  rows: count,
  first: time.optional(),
  last: time.optional(),
  schemaFingerprint: z.string(),
  final: z.boolean(),
  rowHash: count.optional(),
});

/**
 * Wraps a source from an adapter as a gateway. Requests and answers are checked like a gateway's, and everything it
 * throws becomes a RunvaultError. Rows are checked later, like any gateway's. Throws `not_a_gateway` for an
 * answer that does not fit the interface HistorySource.
 */
export function guardedSource(source: HistorySource, file: string): Gateway {
  const stats = { requests: 0, retries: 0, bytes: 0 };
  const place = { file };

  async function guarded<T>(method: string, form: z.ZodType, ask: () => Promise<T>): Promise<T> {
    stats.requests += 1;
    let answer: T;
    try {
      answer = await ask();
    } catch (thrown) {
      throw RunvaultError.from(thrown, { place });
    }
    const { error } = form.safeParse(answer);
    if (error === undefined) return answer;
    const [issue] = error.issues;
    const where = issue!.path.length === 0 ? "" : `${issue!.path.join(".")}: `;
    throw new RunvaultError("not_a_gateway", `${method}() of the adapter: ${where}${issue!.message}`, {
      place,
    });
  }

  const factsForm = z.union([
    z.null(),
    z.map(z.string().refine(isTableName, "not the name of a table"), tableFacts),
  ]);
  const facts: HistorySource["facts"] = async (run, bounds, signal, asked) => {
    requireExactRun(run);
    return await guarded<StorageFacts | null>("facts", factsForm, () =>
      source.facts(run, bounds, signal, asked),
    );
  };

  async function* rows(request: RowRequest, ask: (request: RowRequest) => AsyncIterable<Uint8Array>) {
    requireExactRun(request);
    requireRows(request);
    stats.requests += 1;
    try {
      for await (const chunk of ask(request)) {
        if (!(chunk instanceof Uint8Array)) {
          throw new RunvaultError(
            "not_a_gateway",
            "rows() of the adapter yielded something other than a Uint8Array",
            {
              place,
            },
          );
        }
        stats.bytes += chunk.byteLength;
        yield chunk;
      }
    } catch (thrown) {
      throw RunvaultError.from(thrown, { place });
    }
  }

  const { otherFacts, pagedRows, traits, now, described, reconnect } = source;
  return {
    label: source.label,
    stats,
    retriesOf: () => 0,
    instances: (signal) => guarded("instances", instanceEntries, () => source.instances(signal)),
    async runs(instanceId, signal) {
      requireInstance(instanceId);
      return await guarded("runs", runEntries.nullable(), () => source.runs(instanceId, signal));
    },
    facts,
    async document(run, kind, signal) {
      requireExactRun(run);
      const form = z.instanceof(Uint8Array).nullable();
      return await guarded("document", form, () => source.document(run, kind, signal));
    },
    rows: (request) => rows(request, (asked) => source.rows(asked)),
    ...(now && { now: now.bind(source) }),
    ...(otherFacts && {
      otherFacts: (run, bounds, signal, asked) =>
        guarded<StorageFacts | null>("otherFacts", factsForm, () =>
          otherFacts.call(source, run, bounds, signal, asked),
        ),
    }),
    ...(pagedRows && { pagedRows: (request) => rows(request, (asked) => pagedRows.call(source, asked)) }),
    ...(traits && { traits: traits.bind(source) }),
    ...(described && { described }),
    ...(reconnect && { reconnect: reconnect.bind(source) }),
    [Symbol.asyncDispose]: async () => await source[Symbol.asyncDispose](),
  };
}
