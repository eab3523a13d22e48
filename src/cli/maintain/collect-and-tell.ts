import { openArchive } from "../../archive/archive.ts";
import { collectGarbage } from "../../archive/upkeep/collect-garbage.ts";
import type { GarbageKind, KeepReason, Tally } from "../../archive/upkeep/garbage.ts";
import { exit, worstExit } from "../../model/error.ts";
import { byteText } from "../../model/text/byte-text.ts";
import { grouped } from "../../model/text/number-text.ts";
import { plural } from "../../model/text/plural.ts";
import { wrapLines } from "../output/wrap-lines.ts";
import type { Session } from "../process/session.ts";
import { killStep } from "./kill-step.ts";

interface Values {
  readonly archive: string;
  readonly scratch?: string | undefined;
  readonly grace: number;
  readonly dryRun: boolean;
}

const kindTexts: Readonly<Record<GarbageKind, string>> = {
  replaced: "replaced by later commits",
  unnamed: "named by no manifest",
  work: "left by finished work",
  links: "links in tables/ to no committed bucket",
  cache: "cache of removed runs",
  locks: "locks of runs, readers and jobs that no longer exist",
  halfWritten: "half written",
};

const reasonTexts: Readonly<Record<KeepReason, string>> = {
  young: "within --grace",
  running: "of runs that a job is working on",
  reading: "that a reader may have open",
  unfinished: "of work that the next job continues",
  widening: "of a change of column types that `runvault maintain rebuild` finishes",
  longId: "of runs with long ids; `runvault rm` with the id removes them",
  noManifests: "of an archive without any manifest: restore runs/",
};

/** Collects an archive's garbage and prints what was removed and kept. */
export async function collectAndTell(values: Values, session: Session): Promise<number> {
  const { dryRun, grace, scratch } = values;
  const archive = await openArchive(values.archive, { scratch });
  const statuses: number[] = [];
  const { removed, kept } = await collectGarbage(archive, {
    graceNs: BigInt(grace) * 1_000_000n,
    dryRun,
    signal: session.signal,
    onFailure: (error) => statuses.push(session.failure(error)),
    step: killStep(session.terminal.env),
  });
  if (session.json) await session.print(`${JSON.stringify({ dryRun, removed, kept }, null, 2)}\n`);
  else {
    const text = [
      ...linesOf(dryRun ? "would remove" : "removed", removed, kindTexts),
      ...(sumOf(Object.values(kept)).files === 0 ? [] : linesOf("kept", kept, reasonTexts)),
    ].join("");
    await session.print(wrapLines(text, session.terminal.columns));
  }
  return statuses.length === 0 ? exit.done : worstExit(statuses);
}

/** The sum, and below it each part that is not empty. */
function linesOf<Name extends string>(
  verb: string,
  tallies: Readonly<Record<Name, Tally>>,
  texts: Readonly<Record<Name, string>>,
): string[] {
  const parts = (Object.keys(texts) as Name[]).filter((name) => tallies[name].files > 0);
  const of = parts.map((name) => `  ${sizeText(tallies[name])} ${texts[name]}\n`);
  return [`${verb} ${sizeText(sumOf(Object.values(tallies)))}\n`, ...of];
}

function sumOf(tallies: readonly Tally[]): Tally {
  return {
    files: tallies.reduce((sum, { files }) => sum + files, 0),
    bytes: tallies.reduce((sum, { bytes }) => sum + bytes, 0),
  };
}

function sizeText({ files, bytes }: Tally): string {
  return `${grouped(files)} ${plural(files, "file")}, ${byteText(bytes)}`;
}
