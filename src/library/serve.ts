import { parquetForms } from "../analytics/export/parquet-forms.ts";
import { ArchiveFiles } from "../analytics/files/archive-files.ts";
import { openArchive } from "../archive/archive.ts";
import { archiveControl } from "../archive/read/archive-control.ts";
import { openArchiveSource } from "../archive/read/archive-source.ts";
import { RunvaultError } from "../model/error.ts";
import { version } from "../model/version.ts";
import { isLoopback } from "../serve/http/loopback.ts";
import { type ServeOptions, serve } from "../serve/server.ts";

export { RunvaultError } from "../model/error.ts";

export interface ServeArchiveOptions
  extends Pick<
    ServeOptions,
    "token" | "hostNames" | "origins" | "limits" | "tls" | "transports" | "onRequest" | "onError"
  > {
  /** Default 127.0.0.1. An address that others can reach needs a token. */
  readonly host?: string;
  /** Default 0, any free port. */
  readonly port?: number;
  /** Serves the rows of the latest attempts, proven or not, instead of the proven ones. Default false. */
  readonly allowIncomplete?: boolean;
}

/** A server of an archive; disposing it cuts off answers in progress. */
export interface ServedArchive extends AsyncDisposable {
  /** Ends in /api/v1. */
  readonly url: string;
  readonly port: number;
  /** Accepts no more requests, and waits up to `withinMs` for answers to end; returns how many have not. */
  drain(withinMs: number): Promise<number>;
}

/**
 * Serves an archive through the gateway's interface, REST and RPC, as `runvault serve` does. Throws `not_an_archive`, and
 * `invalid_argument` if the address cannot be used, or if other machines could reach it without a token.
 */
export async function serveArchive(
  folder: string,
  { host = "127.0.0.1", port = 0, allowIncomplete = false, ...options }: ServeArchiveOptions = {},
): Promise<ServedArchive> {
  if (options.token === undefined && !isLoopback(host)) {
    throw new RunvaultError(
      "invalid_argument",
      `other machines can reach ${host}, and no token is required`,
      {
        hint: "Give a token, or serve on 127.0.0.1.",
      },
    );
  }
  const archive = await openArchive(folder);
  const { onError } = options;
  const source = openArchiveSource(archive, {
    ...{ allowIncomplete, forms: parquetForms },
    ...(onError === undefined ? {} : { onDamage: onError }),
  });
  try {
    const served = await serve({
      ...{ compress: true, ...options, source, host, port },
      files: new ArchiveFiles(archive, { allowIncomplete }),
      control: archiveControl(archive, { source, version: version(), allowIncomplete }),
      about: { name: "runvault serve", version: version(), kind: "archive" },
      forms: ["ndjson", ...(Object.keys(parquetForms) as (keyof typeof parquetForms)[])],
    });
    return {
      url: served.url,
      port: served.port,
      drain: (withinMs) => served.drain(withinMs),
      [Symbol.asyncDispose]: async () => {
        await served.close();
        await source[Symbol.asyncDispose]();
      },
    };
  } catch (error) {
    await source[Symbol.asyncDispose]();
    throw error;
  }
}
