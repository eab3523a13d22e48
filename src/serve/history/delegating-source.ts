import type { HistorySource } from "../../model/source.ts";

/** A source that delegates everything to another one, as a base for changing a few methods. */
export function delegatingSource(source: HistorySource): HistorySource {
  return {
    label: source.label,
    instances: (signal) => source.instances(signal),
    runs: (instanceId, signal) => source.runs(instanceId, signal),
    facts: (run, bounds, signal, asked) => source.facts(run, bounds, signal, asked),
    document: (run, kind, signal) => source.document(run, kind, signal),
    rows: (request) => source.rows(request),
    answer: async (request, accepted) => (await source.answer?.(request, accepted)) ?? null,
    traits: (table) => source.traits?.(table),
    described: source.described,
    [Symbol.asyncDispose]: () => source[Symbol.asyncDispose](),
  };
}
