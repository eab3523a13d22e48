import type { Command, Option } from "commander";
import { z } from "zod";
import { RunvaultError } from "../../model/error.ts";
import { isTableName, type TableName, tableNamed, tableNames } from "../../model/profile/table.ts";
import { longestTimerMs, timerMs } from "../../model/retry/deadline.ts";
import { isHttpAddress } from "../../model/text/http-address.ts";
import { nearestName } from "../../model/text/nearest-name.ts";
import { bytesPerSecondOf, mebibytesOf, millisecondsOf } from "../../model/text/quantity.ts";

/** Text that is not empty. */
export const nonEmpty = z.string().min(1, "must not be empty");

/** Parses `500ms`, `60s`, `2m` or `1h` into milliseconds. For deadlines: longer times are cut to a timer's maximum. */
export const durationMs = z.string().transform((text, context) => {
  const ms = timerMs(millisecondsOf(text));
  if (Number.isSafeInteger(ms)) return ms;
  context.addIssue("must be a duration with its unit, such as 500ms, 60s, 2m or 1h");
  return z.NEVER;
});

/** The same for a wait, where longer times are an error. */
export const waitMs = z.string().transform((text, context) => {
  const ms = millisecondsOf(text);
  if (Number.isSafeInteger(ms) && ms <= longestTimerMs) return ms;
  context.addIssue("must be a duration with its unit, such as 500ms, 60s, 2m or 1h, below 24 days");
  return z.NEVER;
});

/** Parses an age into milliseconds: `12h`, `7d`, `4w`, or a duration as above. */
export const ageMs = z.string().transform((text, context) => {
  const ms = millisecondsOf(text);
  if (Number.isSafeInteger(ms)) return ms;
  context.addIssue("must be a time with its unit, such as 12h, 7d or 4w");
  return z.NEVER;
});

/** The same for ages after which data is removed. `1m` could mean a month, so minutes are written `1min`. */
export const removalAgeMs = z
  .string()
  .transform((text, context) => {
    const [, count] = /^(\d+(?:\.\d+)?)m$/.exec(text) ?? [];
    if (count === undefined) return text;
    context.addIssue(
      `is ambiguous: ${text} may be minutes or months; write ${count}min, or days, such as 30d`,
    );
    return z.NEVER;
  })
  .pipe(ageMs);

/** Parses `5%` into 0.05; above zero, at most 100%. */
export const percentage = z.string().transform((text, context) => {
  const share = /^\d+(\.\d+)?%$/.test(text) ? Number(text.slice(0, -1)) / 100 : Number.NaN;
  if (share > 0 && share <= 1) return share;
  context.addIssue("must be a percentage above 0% and up to 100%, such as 5%");
  return z.NEVER;
});

/** Parses digits, also with `_` between them, into an integer in the range. */
export function wholeNumber(least: number, most: number = Number.MAX_SAFE_INTEGER) {
  return z.string().transform((text, context) => {
    const number = /^\d+(_\d+)*$/.test(text) ? Number(text.replaceAll("_", "")) : Number.NaN;
    if (Number.isSafeInteger(number) && number >= least && number <= most) return number;
    context.addIssue(
      most === Number.MAX_SAFE_INTEGER
        ? `must be a whole number of at least ${least}`
        : `must be a whole number from ${least} to ${most}`,
    );
    return z.NEVER;
  });
}

/** A positive number, such as 2.5. */
export const positiveNumber = z.string().transform((text, context) => {
  const number = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (number > 0 && Number.isFinite(number)) return number;
  context.addIssue("must be a positive number, such as 2.5");
  return z.NEVER;
});

/** Parses `512MB` or `2GB` (powers of 1024) into mebibytes. */
export const mebibytes = z.string().transform((text, context) => {
  const size = mebibytesOf(text);
  if (!Number.isNaN(size)) return size;
  context.addIssue("must be a whole number of MB or GB (powers of 1024), such as 512MB or 2GB");
  return z.NEVER;
});

/** Parses `500B`, `64KB` or `2MB` (powers of 1024) into bytes a second. */
export const bytesPerSecond = z.string().transform((text, context) => {
  const rate = bytesPerSecondOf(text);
  if (!Number.isNaN(rate)) return rate;
  context.addIssue("must be a whole number of B, KB or MB per second (powers of 1024), such as 64KB");
  return z.NEVER;
});

/** Table names in `a,b`, each once. An unknown name is an issue with the nearest right one. */
export const tableList = z.string().transform((text, context) => {
  const names = text.split(",").map((name) => name.trim());
  const known: TableName[] = [];
  for (const name of names) {
    if (isTableName(name)) known.push(name);
    else context.addIssue({ code: "custom", message: tableMessage(name), params: { code: "table_unknown" } });
  }
  return [...new Set(known)];
});

function tableMessage(name: string): string {
  const near = nearestName(name, tableNames);
  return `names an unknown table: ${JSON.stringify(name)}${near === null ? "" : ` (did you mean ${near}?)`}; the tables are ${tableNames.join(", ")}`;
}

/** Parses `fills.price=38,12` into `{ fills: { price: "DECIMAL(38,12)" } }`; repeatable. */
export const decimalTypes = exactColumnTypes(
  /^([a-z_]+)\.([a-z_]+)=(\d{1,2}),(\d{1,2})$/,
  "must be TABLE.COLUMN=WIDTH,SCALE with WIDTH up to 38 and SCALE below it, such as fills.price=38,12",
  (width = "", scale = "") => decimalText(width, scale),
);

/** The same, except that `fills.price` alone gives null: the widest type. */
export const widenTypes = exactColumnTypes(
  /^([a-z_]+)\.([a-z_]+)(?:=(\d{1,2}),(\d{1,2}))?$/,
  "must be TABLE.COLUMN, or TABLE.COLUMN=WIDTH,SCALE with WIDTH up to 38 and SCALE below it, such as fills.price or fills.price=38,12",
  (width, scale) => (width === undefined || scale === undefined ? null : decimalText(width, scale)),
);

function decimalText(width: string, scale: string): string {
  return `DECIMAL(${Number(width)},${Number(scale)})`;
}

/** Types by table and column. The pattern gives table, column, width and scale. */
function exactColumnTypes<T>(
  pattern: RegExp,
  form: string,
  typeOf: (width: string | undefined, scale: string | undefined) => T,
) {
  return z.array(z.string()).transform((texts, context) => {
    const types: Partial<Record<TableName, Record<string, T>>> = {};
    for (const text of texts) {
      const match = pattern.exec(text);
      const [, table = "", column = "", width, scale] = match ?? [];
      // without a digit before the point DuckDB prints .5, and nothing at all for 0
      if (match === null || (width !== undefined && (Number(width) > 38 || Number(scale) >= Number(width)))) {
        context.addIssue(`${form}, not ${text}`);
        continue;
      }
      if (!isTableName(table)) {
        context.addIssue({ code: "custom", message: tableMessage(table), params: { code: "table_unknown" } });
        continue;
      }
      const exact = tableNamed(table).columns.filter(({ kind }) => kind === "exact");
      if (!exact.some(({ name }) => name === column)) {
        const names = exact.map(({ name }) => name);
        const near = nearestName(column, names);
        const meant = near === null ? "" : ` (did you mean ${near}?)`;
        const known = names.join(", ") || "none";
        context.addIssue(
          `names an unknown exact column: ${table}.${column}${meant}; the exact columns of ${table} are: ${known}`,
        );
        continue;
      }
      types[table] = { ...types[table], [column]: typeOf(width, scale) };
    }
    return types;
  });
}

/** `COMPLETED,STOPPED`: the source's own words for a finished run. */
export const finishedWords = z.string().transform((text, context) => {
  const words = [...new Set(text.split(",").map((word) => word.trim()))];
  if (words.includes("")) context.addIssue("has nothing between two commas");
  const running = words.find((word) => word.toUpperCase() === "RUNNING");
  if (running !== undefined)
    context.addIssue(`cannot contain ${running}, the status of a run that is still running`);
  return words;
});

/** An http or https address. */
export const httpAddress = z.string().refine(isHttpAddress, "must be an http:// or https:// address");

/**
 * Checks a command's options and arguments. Ignores the environment for options that `unused` names. Throws
 * `invalid_argument` (or `table_unknown`) that names the flag, or the environment variable of the value.
 */
export function checkedValues<S extends z.ZodObject>(
  schema: S,
  command: Command,
  unused: (values: Readonly<Record<string, unknown>>) => readonly string[] = () => [],
): z.output<S> {
  let program = command;
  while (program.parent !== null) program = program.parent;
  // not those of a command in between, such as serve's for `serve token`
  const values: Record<string, unknown> = { ...command.opts(), ...program.opts() };
  for (const [index, argument] of command.registeredArguments.entries()) {
    const value: unknown = command.processedArgs[index];
    if (value !== undefined) values[argument.name()] = value;
  }
  const without = new Set(unused(values));
  for (const option of command.options) {
    const name = option.attributeName();
    if (command.getOptionValueSource(name) !== "env") continue;
    if (without.has(name) || isOff(option)) values[name] = option.defaultValue;
  }
  const parsed = schema.safeParse(values);
  if (parsed.success) return parsed.data;
  const unknownTable = parsed.error.issues.some(
    (issue) => issue.code === "custom" && issue.params?.code === "table_unknown",
  );
  const problems = parsed.error.issues.map(
    ({ path, message }) => `${sourceOf(String(path[0] ?? ""), command)} ${message}`,
  );
  throw new RunvaultError(unknownTable ? "table_unknown" : "invalid_argument", problems.join("; "), {
    hint: `\`${wordsOf(command)} --help\` shows every option.`,
  });
}

/** Such as `runvault serve token`. */
function wordsOf(command: Command): string {
  return command.parent === null ? command.name() : `${wordsOf(command.parent)} ${command.name()}`;
}

/** Whether the environment says no to a flag without a value; commander takes any text for yes. */
function isOff(option: Option): boolean {
  const takesValue = option.required || option.optional;
  return !takesValue && ["0", "false", "no"].includes(process.env[option.envVar ?? ""]?.toLowerCase() ?? "");
}

/** `--max-rps`, or `RUNVAULT_MAX_RPS (for --max-rps)` if the value came from the environment. */
function sourceOf(name: string, command: Command): string {
  const option = command.options.find((candidate) => candidate.attributeName() === name);
  if (option === undefined) return name;
  const flag = option.long ?? option.short ?? name;
  return command.getOptionValueSource(name) === "env" ? `${option.envVar} (for ${flag})` : flag;
}
