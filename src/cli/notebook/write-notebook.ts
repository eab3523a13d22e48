import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { exportTables } from "../../analytics/export/export.ts";
import { ExportFile } from "../../analytics/export/export-file.ts";
import { ExportSession } from "../../analytics/export/export-session.ts";
import { readInstruments } from "../../analytics/instruments/read-instruments.ts";
import { type Archive, openArchive } from "../../archive/archive.ts";
import type { Manifest } from "../../archive/manifest/manifest.ts";
import { RunvaultError } from "../../model/error.ts";
import { tables } from "../../model/profile/table.ts";
import { formatRun } from "../../model/run-argument.ts";
import type { RunRef } from "../../model/source.ts";
import { visible } from "../../model/text/visible-text.ts";
import { manifestsOf } from "../list/manifests-of.ts";
import { runsNamed } from "../options/runs-named.ts";
import { tellShortfall } from "../output/tell-shortfall.ts";
import type { Session } from "../process/session.ts";
import { boundNotebook } from "./bound-notebook.ts";

/** Values of `runvault notebook`. */
export interface NotebookValues {
  readonly archive: string;
  readonly dir: string;
  readonly run?: string | undefined;
  readonly instruments?: string | undefined;
  readonly strict: boolean;
}

const notebookName = "one-run.ipynb";
const databaseName = "run.duckdb";

/**
 * Writes the notebook on a run and its database, and prints both names. Throws `invalid_argument` if one of them
 * exists.
 */
export async function writeNotebook(values: NotebookValues, session: Session): Promise<number> {
  const [notebook, database] = [notebookName, databaseName].map((name) => join(values.dir, name)) as [
    string,
    string,
  ];
  for (const file of [notebook, database]) if (existsSync(file)) throw isThere(file);
  const instruments = values.instruments === undefined ? null : await readInstruments(values.instruments);
  const archive = await openArchive(values.archive);
  const run =
    values.run === undefined
      ? await newestEnded(archive)
      : (await runsNamed([values.run], values.archive, session))[0]!;
  await using opened = await ExportSession.open(archive, {
    readManifests: () => manifestsOf(archive, [run]),
    tables,
    allowIncomplete: false,
    memoryLimitMb: 512,
    threads: 2,
    selection: { filters: {}, decimals: "exact" },
    signal: session.signal,
  });
  const { shortfall } = opened;
  const status = await tellShortfall(shortfall, values, session);
  try {
    await exportTables(opened, tables, {
      ...{ format: "duckdb", out: database, force: false, partition: null, outside: archive.dir },
      ...{ analytics: { instruments }, views: "named" },
    });
    await using file = await ExportFile.create(notebook, { force: false, outside: archive.dir });
    await file.write(piecesOf(await boundNotebook(resolve(archive.dir), run, databaseName)));
    await file.sync();
    await file.putInPlace();
  } catch (error) {
    throw ofFolder(RunvaultError.from(error));
  }
  const { withheld, behind, unproven, setAside } = shortfall;
  const { instanceId: instance, runId } = run;
  const told = { notebook, database, archive: resolve(archive.dir), instance, run: runId };
  await session.print(
    session.json
      ? `${JSON.stringify({ ...told, withheld, behind, unproven, setAside }, null, 2)}\n`
      : `${visible(notebook)}  on ${visible(formatRun(run))}, with ${visible(database)}\n`,
  );
  return status;
}

/** Throws `not_archived` if no archived run has ended. */
async function newestEnded(archive: Archive): Promise<RunRef> {
  const ended = (await archive.manifests()).filter(({ run }) => run.final);
  const began = ({ run }: Manifest) => BigInt(run.started ?? run.ended ?? 0);
  const newest = ended.reduce<Manifest | null>(
    (best, manifest) => (best !== null && began(manifest) < began(best) ? best : manifest),
    null,
  );
  if (newest !== null) return newest;
  throw new RunvaultError("not_archived", "the archive has no run that has ended", {
    place: { file: archive.dir },
    hint: "Name one as INSTANCE/RUN; `runvault runs` lists them.",
  });
}

function isThere(file: string): RunvaultError {
  return new RunvaultError("invalid_argument", "the folder has a notebook already", {
    place: { file },
    hint: "Name another folder, or move this file away.",
  });
}

/** A file's error in this command's words. */
function ofFolder({ code, message, hint, place, scope, cause }: RunvaultError): RunvaultError {
  const own = (text: string) => text.replaceAll("--out", "DIR");
  return new RunvaultError(code, own(message), { cause, place, scope, ...(hint ? { hint: own(hint) } : {}) });
}

async function* piecesOf(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}
