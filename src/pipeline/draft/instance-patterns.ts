import type { InstanceEntry } from "../../model/source.ts";
import { countText } from "../../model/text/plural.ts";
import { visible } from "../../model/text/visible-text.ts";

/** A pattern of `runs.instances`, with what there is to say of it. */
export interface InstancePattern {
  readonly pattern: string;
  readonly remark: string;
}

/** A list that a person still reads, and that leaves a job file far below its greatest size. */
const mostPatterns = 20;
const mostCharacters = 4_000;

/**
 * Patterns that match all of some instances: their names, or, of many, what groups of them begin with. Null where there are
 * too many even of these, or no instance at all: then `*` is the pattern.
 */
export function instancePatterns(instances: readonly InstanceEntry[]): readonly InstancePattern[] | null {
  const byName = patternsOf(instances, ({ instanceId }) => patternOf(instanceId));
  if (isShort(byName)) return byName;
  const byStart = patternsOf(instances, ({ instanceId }) => groupOf(instanceId));
  return isShort(byStart) && byStart.every(({ pattern }) => pattern !== "*") ? byStart : null;
}

function isShort(patterns: readonly InstancePattern[]): boolean {
  const characters = patterns.reduce((sum, { pattern }) => sum + pattern.length, 0);
  return patterns.length > 0 && patterns.length <= mostPatterns && characters <= mostCharacters;
}

function patternsOf(
  instances: readonly InstanceEntry[],
  pattern: (instance: InstanceEntry) => string,
): readonly InstancePattern[] {
  return [...Map.groupBy(instances, pattern)]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([pattern, own]) => ({ pattern, remark: remarkOf(pattern, own) }));
}

function remarkOf(pattern: string, instances: readonly InstanceEntry[]): string {
  const count = instances.reduce((sum, { runIds }) => sum + runIds.length, 0);
  const runs = count === 0 ? "no runs listed" : countText(count, "run");
  if (instances.length > 1) return `${instances.length} instances, ${runs}`;
  const [{ instanceId } = { instanceId: "" }] = instances;
  // a pattern has no way to write these characters
  return /[*?]/.test(pattern) ? `${visible(instanceId.slice(0, 60))}: ${runs}` : runs;
}

/** The name of an instance as a pattern; `?` stands for each character that no pattern can have. */
function patternOf(instanceId: string): string {
  return instanceId
    .replaceAll("%", "%25")
    .replaceAll("/", "%2F")
    .replace(/[*?[\]{}\\!]/g, "?");
}

/** What an instance's name begins with, up to the first sign that parts words, or to its number. */
function groupOf(instanceId: string): string {
  const [start = ""] = /^[^-_.:/ ]+[-_.:/ ]/.exec(instanceId) ?? /^.*?(?=\d+$)/s.exec(instanceId) ?? [];
  return start === "" || start === instanceId ? patternOf(instanceId) : `${patternOf(start)}*`;
}
