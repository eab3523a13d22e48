import type { InstanceEntry } from "../../model/source.ts";
import { countText } from "../../model/text/plural.ts";
import { visible } from "../../model/text/visible-text.ts";

/** A pattern of `runs.instances`, with a comment. */
export interface InstancePattern {
  readonly pattern: string;
  readonly remark: string;
}

/** A list that a person still reads, and far below a job file's greatest size. */
const mostPatterns = 20;
const mostCharacters = 4_000;

/**
 * Patterns that match all of these instances: their names or, for many, their common beginnings. Null if there are too
 * many even of those, or no instances: then `*` is the pattern.
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
  // patterns cannot express these characters
  return /[*?]/.test(pattern) ? `${visible(instanceId.slice(0, 60))}: ${runs}` : runs;
}

/** An instance's name as a pattern; `?` replaces each character that patterns cannot have. */
function patternOf(instanceId: string): string {
  return instanceId
    .replaceAll("%", "%25")
    .replaceAll("/", "%2F")
    .replace(/[*?[\]{}\\!]/g, "?");
}

/** The beginning of an instance's name, up to the first separator or its number. */
function groupOf(instanceId: string): string {
  const [start = ""] = /^[^-_.:/ ]+[-_.:/ ]/.exec(instanceId) ?? /^.*?(?=\d+$)/s.exec(instanceId) ?? [];
  return start === "" || start === instanceId ? patternOf(instanceId) : `${patternOf(start)}*`;
}
