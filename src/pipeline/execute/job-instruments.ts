import { type InstrumentsFile, readInstruments } from "../../analytics/instruments/read-instruments.ts";
import { RunvaultError } from "../../model/error.ts";

/**
 * The instruments file at a key of a job file; null without one. Errors name the key, because records keep no paths.
 */
export async function jobInstruments(key: string, file: string | undefined): Promise<InstrumentsFile | null> {
  if (file === undefined) return null;
  try {
    return await readInstruments(file);
  } catch (thrown) {
    const { code, message, hint, place } = RunvaultError.from(thrown);
    const line = place.line === undefined ? "" : `:${place.line}`;
    throw new RunvaultError(code, `${key}, ${file}${line}: ${message}`, {
      ...{ cause: thrown, place },
      ...(hint === undefined ? {} : { hint }),
    });
  }
}
