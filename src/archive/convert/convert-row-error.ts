import { type ErrorPlace, RunvaultError, type WiderColumn } from "../../model/error.ts";
import { digitsOf, widerType } from "../../model/profile/exact-types.ts";
import { type CheckedLine, type LineRules, shorten } from "../../row/strict-line.ts";

/** The error for a line that is not a proper row of the run. */
export function rowError(
  checked: Exclude<CheckedLine, { kind: "row" }>,
  rules: LineRules,
  place: ErrorPlace,
): RunvaultError {
  switch (checked.kind) {
    case "bad":
      return new RunvaultError("malformed_row", checked.reason, { place });
    case "conflict": {
      const wanted = checked.column === "run_id" ? rules.runId : rules.instanceId;
      return new RunvaultError(
        "history_identity_conflict",
        `row seq ${checked.seq} has ${checked.column} ${shorten(checked.value)}, but ${shorten(wanted)} was asked for`,
        {
          place,
          hint: "Report it to the gateway's operator: it answered with rows of another run. No rows of this table were kept.",
        },
      );
    }
    case "range":
      return rangeError(checked, rules, place);
  }
}

function rangeError(
  { column, value, type, seq }: Extract<CheckedLine, { kind: "range" }>,
  { table }: LineRules,
  place: ErrorPlace,
): RunvaultError {
  const message = `${table.name}.${column} of row seq ${seq} is ${shorten(value)}, which ${type} cannot hold`;
  const digits = digitsOf(value);
  const wider = type.startsWith("DECIMAL") ? widerType(type, digits) : null;
  if (wider !== null)
    return tooNarrow(message, place, [{ table: table.name, column, type: wider, ...digits }]);
  return new RunvaultError("value_out_of_range", message, {
    place,
    hint: "Ask the gateway's operator to correct this value: no column type can hold it.",
  });
}

/** The error for values that a wider column type would hold. */
export function tooNarrow(message: string, place: ErrorPlace, wider: readonly WiderColumn[]): RunvaultError {
  const flags = (flag: string) =>
    wider
      .map(({ table, column, type }) => `${flag} ${table}.${column}=${/[0-9,]+/.exec(type)![0]}`)
      .join(" ");
  return new RunvaultError("value_out_of_range", message, {
    place,
    wider,
    hint: `Archive the run again with \`--widen auto\`, or after running \`runvault maintain rebuild ${flags("--widen")}\`; for a new archive, use \`${flags("--decimal")}\`.`,
  });
}
