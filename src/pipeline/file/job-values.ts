import { resolve } from "node:path";
import { z } from "zod";
import { headerNamePattern } from "../../gateway/options.ts";
import { longestTimerMs } from "../../model/retry/deadline.ts";
import { latestRun, parseInstance, parseWantedRun } from "../../model/run-argument.ts";
import { type Glob, glob, globFault } from "../../model/text/glob.ts";
import { isHttpAddress } from "../../model/text/http-address.ts";
import { bytesPerSecondOf, mebibytesOf, millisecondsOf } from "../../model/text/quantity.ts";

/** What a job file's values depend on: its folder, where relative paths start, and the environment. */
export interface JobPlace {
  readonly folder: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Whether variables with secrets may be missing here. */
  readonly withoutSecrets?: boolean;
}

/** A time span. */
export interface Duration {
  readonly ms: number;
  readonly ns: bigint;
}

/** Where a secret is, never the secret itself. A file is read again each time, because secrets rotate. */
export type SecretPlace =
  | { readonly kind: "file"; readonly file: string }
  | { readonly kind: "env"; readonly name: string };

/** Runs whose instance and id match. */
export interface RunGlob {
  readonly instance: Glob;
  readonly run: Glob;
}

/** Additions to an error message: a hint, or the words among which the right one may be. */
interface Told {
  readonly hint?: string;
  readonly near?: "zones";
}

type Raise = (message: string, told?: Told) => void;

/**
 * Text, checked and parsed in one step: `read` raises errors. The JSON Schema has the pattern, if any, and `published`,
 * which says as much as possible of what `read` refuses.
 */
export function text<T>(
  must: string,
  pattern: RegExp | null,
  read: (value: string, raise: Raise) => T,
  published?: RegExp,
) {
  const base = z.string({ error: must });
  const refused = pattern === null ? base.min(1, "must not be empty") : base.regex(pattern, must);
  const checked = published === undefined ? refused : refused.meta({ pattern: published.source });
  return checked.transform((value, context): T => {
    let isWrong = false;
    const result = read(value, (message, told = {}) => {
      isWrong = true;
      context.addIssue({ code: "custom", message, params: told, input: value });
    });
    return isWrong ? z.NEVER : result;
  });
}

function durationOf(value: string): Duration {
  const ms = millisecondsOf(value);
  return { ms, ns: BigInt(ms) * 1_000_000n };
}

/** Zero in any unit is no time at all. */
const notZero = "(?!0+(?:\\.0+)?[a-z])";
const timer = "must be a duration with its unit, such as 30s, 5m or 2h";

function wait(pattern: string) {
  return text(timer, new RegExp(pattern), (value, raise) => {
    const duration = durationOf(value);
    if (duration.ms > longestTimerMs) raise("must be below 24 days", { hint: "Give a shorter time." });
    return duration;
  });
}

/** `500ms`, `30s`, `5m`, `2h`, `1d`: a wait of up to 24 days. */
export const waitTime = wait(`^${notZero}\\d+(?:\\.\\d+)?(?:ms|s|m|min|h|d|w)$`);

/** The same, or zero. */
export const waitTimeOrNone = wait("^\\d+(?:\\.\\d+)?(?:ms|s|m|min|h|d|w)$");

/** `12h`, `7d`, `4w`: an age. `1m` could mean a month, so minutes are written `1min`. */
export const age = text(
  "must be a time with its unit, such as 12h, 7d or 4w (write minutes as min, because m could mean months)",
  new RegExp(`^${notZero}\\d+(?:\\.\\d+)?(?:ms|s|min|h|d|w)$`),
  (value, raise) => {
    const ms = millisecondsOf(value);
    if (ms <= 100 * 365.25 * 86_400_000) return durationOf(value);
    raise("must be below a hundred years", { hint: "Leave the key out for no limit." });
    return z.NEVER;
  },
);

/** Parses `512MB` or `20GB` (powers of 1024) into bytes. */
export const byteSize = text(
  "must be a size with its unit, MB or GB (powers of 1024), such as 512MB or 20GB",
  /^0*[1-9]\d{0,5}[MmGg]i?[Bb]?$/,
  (value) => mebibytesOf(value) * 1024 * 1024,
);

/** Parses `500B`, `64KB` or `2MB` (powers of 1024) into bytes a second. */
export const byteRate = text(
  "must be a size per second with its unit, B, KB or MB (powers of 1024), such as 64KB",
  /^0*[1-9]\d{0,8}(?:[Bb]|[KkMm]i?[Bb]?)(?:\/s)?$/,
  (value) => bytesPerSecondOf(value),
);

/** A whole number in a range. */
export function wholeNumber(from: number, to: number) {
  const must = `must be a whole number from ${from} to ${to}`;
  return z.int({ error: must }).min(from, must).max(to, must);
}

/** A number above zero, in a range. */
export function positiveNumber(least: number, most: number) {
  const must = `must be a number from ${least} to ${most}`;
  return z.number({ error: must }).min(least, must).max(most, must);
}

/** true or false. */
export const trueOrFalse = z.boolean({ error: "must be true or false" });

/** One of some words. */
export function oneOf<const T extends readonly [string, ...string[]]>(words: T) {
  return z.enum(words, {
    error: words.length === 1 ? `must be ${words[0]}` : `must be one of ${words.join(", ")}`,
  });
}

/** A list without duplicates; `of` describes its items. */
export function anyOf<T extends z.ZodType>(item: T, of: string) {
  return z
    .array(item, { error: `must be a list of ${of}` })
    .superRefine((items, context) => {
      const ids = items.map(idOf);
      for (const [index, id] of ids.entries()) {
        if (ids.indexOf(id) === index) continue;
        const params: Told = { hint: "Remove one of the two." };
        context.addIssue({ code: "custom", path: [index], message: "must not be given twice", params });
      }
    })
    .meta({ uniqueItems: true });
}

/** Identifies an item for the comparison: patterns are equal if written alike. */
function idOf(item: unknown): string {
  return typeof item === "object" ? JSON.stringify(item) : String(item);
}

/** The same with at least one item. */
export function someOf<T extends z.ZodType>(item: T, of: string) {
  return anyOf(item, of).min(1, "must not be an empty list");
}

/** Text that is not empty, in one line. */
export const words = text("must be text", null, (value, raise) => {
  if (/\p{Cc}/u.test(value)) raise("must not contain control characters", oneLine);
  return value;
});

const oneLine = { hint: "Write it in one line, without line breaks and tabs." };

/** The name of a variable. */
const variable = "must be the name of an environment variable, such as GATEWAY_TOKEN";
const variablePattern = /^[A-Za-z_][A-Za-z0-9_]*$/;

const mustBeSet = "must name a variable that is set in the environment";
const notSet = { hint: "Set the variable, or correct its name." };
const wrongAddress = { hint: "Set the variable to an address such as https://hooks.example.com/T0/B0." };

/** Keys whose values depend on the place of the job file. */
export function placedValues({ folder, env, withoutSecrets = false }: JobPlace) {
  /** A file or folder, relative to the job file's folder; read as an absolute path. */
  const path = text(
    "must be a path",
    null,
    (value, raise) => {
      if (/\p{Cc}/u.test(value)) raise("must not contain control characters", oneLine);
      else if (/^[a-z][a-z0-9+.-]*:\/\//i.test(value))
        raise("must be a path on this machine, not an address", {
          hint: "Give a file or folder, such as /data/archive.",
        });
      else if (value === "~" || value.startsWith("~/"))
        raise("must not begin with ~, which only shells replace", {
          hint: `Write the whole path, or begin it with \${HOME}.`,
        });
      return resolve(folder, value);
    },
    /^(?!~(?:\/|$))(?![A-Za-z][A-Za-z0-9+.-]*:\/\/)/,
  );

  /** A file that node_exporter reads. */
  const metricsFile = text(
    "must be a path that ends in .prom: node_exporter reads no other files",
    /\.prom$/,
    (value) => resolve(folder, value),
  );

  /** A module in the job file's folder or below. Code is never loaded from anywhere else. */
  const modulePath = text(
    "must be the path of a module beside this file, such as ./my-gateway.ts",
    /^\.\/(?!.*(?:^|\/)\.\.(?:\/|$))[^\p{Cc}]+\.(?:ts|mts|js|mjs)$/u,
    (value) => resolve(folder, value),
  );

  /** The name of a variable that is set. */
  const setVariable = text(variable, variablePattern, (name, raise) => {
    if (!withoutSecrets && (env[name] ?? "") === "") raise(mustBeSet, notSet);
    return name;
  });

  /** The name of a variable with an http or https address. The address may be a secret, as for webhooks. */
  const addressVariable = text(variable, variablePattern, (name, raise) => {
    const value = env[name] ?? "";
    if (withoutSecrets) return name;
    if (value === "") raise(mustBeSet, notSet);
    else if (!isHttpAddress(value))
      raise("must name a variable that holds an http:// or https:// address", wrongAddress);
    return name;
  });

  /** The name of a variable that holds the address of a mail server, with user and password. */
  const mailVariable = text(variable, variablePattern, (name, raise) => {
    const value = env[name] ?? "";
    if (withoutSecrets) return name;
    if (value === "") raise(mustBeSet, notSet);
    else if (!/^smtps?:$/.test(URL.parse(value)?.protocol ?? "") || URL.parse(value)?.hostname === "")
      raise("must name a variable that holds an smtp:// or smtps:// address", {
        hint: "For example smtp://USER:PASSWORD@mail.example.com:587, with %40 for an @ in USER or PASSWORD.",
      });
    else if ((URL.parse(value)?.username === "") !== (URL.parse(value)?.password === ""))
      raise("must name a variable with both a user and a password, or neither");
    return name;
  });
  return { path, modulePath, metricsFile, setVariable, addressVariable, mailVariable };
}

const gatewayMust = "must be an http:// or https:// address without a query";

/** An http or https address without user and password, for which `literalSecrets` has its own message. */
export const address = text(
  "must be an http:// or https:// address",
  /^[Hh][Tt][Tt][Pp][Ss]?:\/\/[^\s/]/,
  (value, raise) => {
    if (!isHttpAddress(value)) raise("must be an http:// or https:// address");
    return value;
  },
  /^[Hh][Tt][Tt][Pp][Ss]?:\/\/[^\s/@?#]+(?:[/?#]\S*)?$/,
);

/** The address of a gateway, without a query or fragment. */
export const gatewayAddress = text(
  gatewayMust,
  /^[Hh][Tt][Tt][Pp][Ss]?:\/\/[^\s/?#][^\s?#]*$/,
  (value, raise) => {
    if (!isHttpAddress(value)) raise(gatewayMust);
    return value;
  },
  /^[Hh][Tt][Tt][Pp][Ss]?:\/\/[^\s/@?#]+(?:\/[^\s?#]*)?$/,
);

/** A mail address, without a name. */
export const mailAddress = text(
  "must be a mail address, such as quant@example.com",
  /^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9.-]+$/,
  (value) => value,
);

/** The name of a header. */
export const headerName = text(
  "must be the name of a header, such as X-Api-Key",
  headerNamePattern,
  (value) => value,
);

/** The pattern of an instance. */
export const instanceGlob = text(
  "must be an instance or a pattern, such as alpha-1 or alpha-* (in an instance write / as %2F)",
  /^[^/]+$/,
  (value, raise): Glob => {
    checkGlob(value, raise);
    return glob(value, decoded);
  },
  /^(?!.*\*\*)[^/[\]{}\\!]+$/,
);

/** The pattern of a run. */
export const runGlob = text(
  "must be INSTANCE/RUN or a pattern, such as alpha-1/2022-01-01-001 or */2022-01-01-*",
  /^[^/]+\/.+$/,
  (value, raise): RunGlob => {
    checkGlob(value, raise);
    const slash = value.indexOf("/");
    if (value.slice(slash + 1) === latestRun)
      raise("matches no run: only `run` takes `latest`", {
        hint: "Name the runs by their ids, with * and ?.",
      });
    return { instance: glob(value.slice(0, slash), decoded), run: glob(value.slice(slash + 1)) };
  },
  /^(?!.*\*\*)[^/[\]{}\\!]+\/(?!latest$)[^[\]{}\\!]+$/,
);

function decoded(part: string): string {
  return part === "" ? "" : parseInstance(part);
}

function checkGlob(value: string, raise: Raise): void {
  const fault = globFault(value);
  if (fault !== null) raise(fault, { hint: "List the names one by one, or use * and ?." });
  if (/\p{Cc}/u.test(value)) raise("must not contain control characters", oneLine);
}

/** INSTANCE/RUN, or INSTANCE/latest. */
export const oneRun = text(
  "must be one run, INSTANCE/RUN, such as alpha-1/2022-01-01-001, or INSTANCE/latest",
  /^[^/]+\/(?!current$).+$/,
  (value, raise) => {
    try {
      return parseWantedRun(value);
    } catch {
      raise("must be one run, INSTANCE/RUN, that a gateway can be asked for, or INSTANCE/latest", {
        hint: "Name a run by its exact id as INSTANCE/RUN; `runvault runs --gateway URL` lists them.",
      });
      return z.NEVER;
    }
  },
);
