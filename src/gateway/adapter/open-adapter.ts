import { realpath } from "node:fs/promises";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { RunvaultError } from "../../model/error.ts";
import type { HistorySource } from "../../model/source.ts";
import { unreadable } from "../../model/unreadable.ts";
import type { Gateway } from "../gateway.ts";
import type { GatewayOptions } from "../options.ts";
import { guardedSource } from "./guarded-source.ts";

/** What an adapter gets: the gateway as named on the command line or in the job file. */
export type AdapterOptions = Pick<GatewayOptions, "baseUrl" | "token" | "retry" | "concurrency">;

/** The default export of an adapter. */
export type Adapter = (options: AdapterOptions) => HistorySource | Promise<HistorySource>;

const hint =
  "An adapter is a module whose default export is a function that returns a HistorySource: docs/profiles.md has an example.";

/**
 * Opens a gateway through the user's own module. Throws `invalid_argument` if the file is not such a module, or does
 * not return a HistorySource. The source's answers are checked like a gateway's: see `guardedSource`.
 */
export async function openAdapter(file: string, options: GatewayOptions): Promise<Gateway> {
  if (options.profile !== undefined) {
    throw new RunvaultError("invalid_argument", "a gateway has either an adapter or a profile, not both", {
      place: { file },
      hint: "Remove one of them; the profile may come from RUNVAULT_PROFILE.",
    });
  }
  const path = await realpath(resolve(file)).catch((error: unknown) => {
    throw unreadable(file, error, "--adapter");
  });
  const place = { file };
  let module: { readonly default?: unknown };
  try {
    module = await import(pathToFileURL(path).href);
  } catch (cause) {
    throw new RunvaultError("invalid_argument", `the adapter cannot be loaded: ${wordsOf(cause)}`, {
      ...{ cause, place, hint },
    });
  }
  if (typeof module.default !== "function") {
    throw new RunvaultError("invalid_argument", "the adapter's default export is not a function", {
      ...{ place, hint },
    });
  }
  const { baseUrl, token, retry, concurrency } = options;
  let source: HistorySource;
  try {
    source = await (module.default as Adapter)({ baseUrl, token, retry, concurrency });
  } catch (cause) {
    if (cause instanceof RunvaultError) throw cause;
    throw new RunvaultError("invalid_argument", `the adapter did not open: ${wordsOf(cause)}`, {
      ...{ cause, place },
    });
  }
  const missing = needed.filter((name) => typeof source?.[name as keyof HistorySource] !== "function");
  if (missing.length > 0 || typeof source.label !== "string") {
    const what = missing.length > 0 ? missing.map(String).join(", ") : "label";
    throw new RunvaultError(
      "invalid_argument",
      `the adapter did not return a HistorySource: it lacks ${what}`,
      {
        ...{ place, hint },
      },
    );
  }
  return guardedSource(source, file);
}

const needed = ["instances", "runs", "facts", "document", "rows", Symbol.asyncDispose] as const;

function wordsOf(thrown: unknown): string {
  return (thrown instanceof Error ? thrown.message : String(thrown)).split("\n")[0]!;
}
