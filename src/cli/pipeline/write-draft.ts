import type { Stats } from "node:fs";
import { realpath, stat, writeFile } from "node:fs/promises";
import { basename, dirname, extname, relative, resolve } from "node:path";
import { isMissing, replaceFile } from "../../archive/storage/fsync-files.ts";
import { exit, RunvaultError } from "../../model/error.ts";
import { makeFolder } from "../../model/make-folder.ts";
import { countText } from "../../model/text/plural.ts";
import { zoneFault } from "../../model/text/time-zone.ts";
import { visible } from "../../model/text/visible-text.ts";
import { type DraftSettings, draftText } from "../../pipeline/draft/draft-text.ts";
import { type GatewayLook, lookAtGateway } from "../../pipeline/draft/look-at-gateway.ts";
import { yamlText, yamlVariable } from "../../pipeline/draft/yaml-text.ts";
import { readJobText } from "../../pipeline/file/job-files.ts";
import { type GatewayValues, openGatewayFor } from "../options/gateway-options.ts";
import { shellWord } from "../output/shell-word.ts";
import type { Session } from "../process/session.ts";

interface Values extends GatewayValues {
  /** An alternative to `gateway`. */
  readonly url?: string | undefined;
  readonly archive: string;
  readonly out?: string | undefined;
  readonly name?: string | undefined;
  readonly force: boolean;
  /** Options that the command line has itself. */
  readonly given: ReadonlySet<string>;
}

interface Address {
  readonly address: string;
  readonly isFromEnvironment: boolean;
}

const standardOutput = "-";

/** Writes a job file for a gateway from its answers; replaces an existing file only if asked to. */
export async function writeDraft(values: Values, session: Session): Promise<number> {
  const name = values.name ?? nameOf(values.out) ?? "nightly";
  const out = values.out ?? `${name}.yaml`;
  // before any request
  if (out !== standardOutput) await refuseExisting(out, values.force);
  const { address, isFromEnvironment } = addressOf(values, session);
  const look = await lookAt({ ...values, gateway: address }, session);
  const file = out === standardOutput ? `${name}.yaml` : out;
  const text = draftText(settingsOf({ ...values, name, file, address, isFromEnvironment }, session), look);
  await requireSound(text, file, session);
  if (out === standardOutput) {
    await session.print(text);
    return exit.done;
  }
  await write(out, text, values.force);
  await session.print(session.json ? reportJson(out, name, look) : reportText(out, look));
  return exit.done;
}

/** Names the job after its file, if that is a valid name. */
function nameOf(out: string | undefined): string | null {
  if (out === undefined || out === standardOutput) return null;
  const name = basename(out, extname(out)).toLowerCase();
  return /^[a-z0-9](?:[a-z0-9-]{0,50}[a-z0-9])?$/.test(name) ? name : null;
}

async function refuseExisting(out: string, force: boolean): Promise<void> {
  const there = await statIfThere(out);
  if (there === null) return;
  if (!there.isFile()) {
    throw new RunvaultError("invalid_argument", "the path exists and is not a regular file", {
      place: { file: out },
      hint: "Name another with --out; - is standard output.",
    });
  }
  if (!force) throw existing(out);
}

async function statIfThere(file: string): Promise<Stats | null> {
  try {
    return await stat(file);
  } catch (error) {
    if (isMissing(error)) return null;
    throw RunvaultError.from(error, { place: { file } });
  }
}

function existing(out: string): RunvaultError {
  return new RunvaultError("invalid_argument", "the file exists already", {
    place: { file: out },
    hint: "Name another with --out, or set --force to replace it.",
  });
}

/** The address as given, and whether it came from the environment. */
function addressOf({ url, gateway }: Values, { terminal }: Session): Address {
  const ofEnvironment = terminal.env.RUNVAULT_GATEWAY;
  const isFromEnvironment = url === undefined && gateway === ofEnvironment;
  // an argument beats the environment, but not an option
  if (url !== undefined && gateway !== undefined && gateway !== url && gateway !== ofEnvironment) {
    throw new RunvaultError("invalid_argument", "two gateways are named", {
      hint: "Give the address once, with or without --gateway.",
    });
  }
  const address = url ?? gateway;
  if (address === undefined) {
    throw new RunvaultError("invalid_argument", "no gateway is named", {
      hint: "Give its address, as in `runvault init https://gateway.example.com/api/v1`, or set RUNVAULT_GATEWAY.",
    });
  }
  const { username, password } = new URL(address);
  if (!isFromEnvironment && (username !== "" || password !== "")) {
    throw new RunvaultError("invalid_argument", "a job file holds no user and password", {
      hint: "Set RUNVAULT_GATEWAY to the address instead: the file then names the variable.",
    });
  }
  return { address, isFromEnvironment };
}

async function lookAt(values: GatewayValues, session: Session): Promise<GatewayLook> {
  await using gateway = await openGatewayFor(values, session);
  return await lookAtGateway(gateway, session.signal);
}

/** The contents of the file. A value from the environment is never written, only the name of its variable. */
function settingsOf(
  values: Values & Address & { readonly file: string; readonly name: string },
  { terminal: { env } }: Session,
): DraftSettings {
  const { file, name, address, isFromEnvironment, given } = values;
  const folder = dirname(resolve(file));
  const variables: [string, string][] = [];
  const fromEnvironment = (variable: string, value: string, meaning: string) => {
    const option = variable.slice("RUNVAULT_".length).toLowerCase();
    const isGiven = given.has(option.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase()));
    if (isGiven || env[variable] !== value) return null;
    variables.push([variable, meaning]);
    return yamlVariable(variable);
  };
  const text = (variable: string, value: string, meaning: string) =>
    fromEnvironment(variable, value, meaning) ?? yamlText(value);
  const path = (variable: string, value: string, meaning: string) =>
    fromEnvironment(variable, value, meaning) ?? yamlText(pathFrom(folder, value));
  // the { of a variable would open a map within a map
  const quoted = (written: string) => (written.startsWith("${") ? `"${written}"` : written);

  const url = isFromEnvironment
    ? text("RUNVAULT_GATEWAY", address, "the gateway's base address")
    : yamlText(address);
  let token: string | null = null;
  if (values.tokenFile !== undefined) {
    const shown = path("RUNVAULT_TOKEN_FILE", values.tokenFile, "the file that holds the gateway's token");
    token = `{ file: ${quoted(shown)} }`;
  } else if ((env.RUNVAULT_TOKEN ?? "").trim() !== "") {
    variables.push(["RUNVAULT_TOKEN", "the gateway's token"]);
    token = "{ env: RUNVAULT_TOKEN }";
  }
  const reach: [string, string][] = [];
  if (values.transport !== "auto") reach.push(["transport", values.transport]);
  if (values.tokenHeader !== undefined)
    reach.push([
      "token_header",
      text("RUNVAULT_TOKEN_HEADER", values.tokenHeader, "the header that carries the token"),
    ]);
  const files = [
    ["ca", "RUNVAULT_CA", values.ca, "CA certificates to trust"],
    ["cert", "RUNVAULT_CERT", values.cert, "the client certificate"],
    ["key", "RUNVAULT_KEY", values.key, "the private key of the client certificate"],
  ] as const;
  const tls = files.flatMap(([key, variable, value, meaning]) =>
    value === undefined ? [] : [`${key}: ${quoted(path(variable, value, `file with ${meaning}`))}`],
  );
  if (tls.length > 0) reach.push(["tls", `{ ${tls.join(", ")} }`]);
  if (values.profile !== undefined)
    reach.push([
      "profile",
      path("RUNVAULT_PROFILE", values.profile, "the profile of a gateway that differs"),
    ]);
  if (!values.compression) reach.push(["compression", "false"]);
  if (values.acceptUnframed) reach.push(["accept_unframed", "true"]);
  const zone = new Intl.DateTimeFormat().resolvedOptions().timeZone;
  const isOwnZone = zoneFault(zone) === null;
  return {
    ...{ name, file: shellWord(file), url, token, reach },
    budget: budgetText(values),
    archive: path("RUNVAULT_ARCHIVE", values.archive, "the archive's folder"),
    timezone: isOwnZone ? zone : "UTC",
    isOwnZone,
    variables,
  };
}

/** A path relative to the job file's folder; absolute paths stay absolute. */
function pathFrom(folder: string, path: string): string {
  if (path.startsWith("/")) return path;
  const from = relative(folder, resolve(path));
  // a shell would expand ~ to the home folder, and YAML would read it as null
  return from === "" ? "." : from.startsWith("~") ? `./${from}` : from;
}

/** The most important budget keys, and all that differ from their defaults. */
function budgetText(values: Values): string {
  const { maxRps = 20, concurrency, retries } = values;
  const { connectTimeout, headersTimeout, idleTimeout, documentTimeout } = values;
  const parts = [
    `rps: ${maxRps}`,
    `answers: ${concurrency}`,
    ...(retries === 5 ? [] : [`retries: ${retries}`]),
    `connect: ${spanText(connectTimeout)}`,
    ...(headersTimeout === 60_000 ? [] : [`headers: ${spanText(headersTimeout)}`]),
    `idle: ${spanText(idleTimeout)}`,
    ...(documentTimeout === 120_000 ? [] : [`document: ${spanText(documentTimeout)}`]),
  ];
  return `{ ${parts.join(", ")} }`;
}

function spanText(ms: number): string {
  return ms % 1000 === 0 ? `${ms / 1000}s` : `${ms}ms`;
}

/** Checks that command line values are valid in a job file; otherwise throws and writes no file. */
async function requireSound(text: string, file: string, { terminal: { env } }: Session): Promise<void> {
  const { faults } = await readJobText(file, text, { env });
  const wrong = faults.find(({ level }) => level === "error");
  if (wrong === undefined) return;
  throw new RunvaultError("invalid_argument", `no file was written: ${wrong.message}`, { hint: wrong.hint });
}

async function write(out: string, text: string, force: boolean): Promise<void> {
  await makeFolder(dirname(resolve(out)));
  const there = force ? await statIfThere(out) : null;
  try {
    if (there === null) await writeFile(out, text, { flag: "wx" });
    // a link stays a link
    else await replaceFile(await realpath(out), Buffer.from(text), there.mode & 0o777);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") throw existing(out);
    throw RunvaultError.from(error, { place: { file: out } });
  }
}

function runsOf({ instances }: GatewayLook): number {
  return instances.reduce((sum, { runIds }) => sum + runIds.length, 0);
}

function reportText(out: string, look: GatewayLook): string {
  const word = visible(shellWord(out));
  const lines = [
    `${visible(out)}: written for ${countText(look.instances.length, "instance")} with ${countText(runsOf(look), "run")}`,
    "next:",
    `  runvault check ${word} --connect`,
    `  runvault run ${word} --dry-run`,
    `  runvault run ${word}`,
  ];
  return `${lines.join("\n")}\n`;
}

function reportJson(file: string, name: string, look: GatewayLook): string {
  const report = { file, name, instances: look.instances.length, runs: runsOf(look) };
  return `${JSON.stringify(report, null, 2)}\n`;
}
