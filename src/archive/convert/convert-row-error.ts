import { type ErrorPlace, RunvaultError } from "../../model/error.ts";
import { type CheckedLine, type LineRules, shorten } from "../../row/strict-line.ts";

/** The error for a line that is no proper row of the run. */
export function rowError(
  checked: Exclude<CheckedLine, { kind: "row" }>,
  rules: LineRules,
  place: ErrorPlace,
): RunvaultError {
  const { table } = rules;
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
          hint: "Report it to the gateway's operator: it answered with rows of another run. Nothing of this table was kept.",
        },
      );
    }
    case "range": {
      const column = `${table.name}.${checked.column}`;
      const wider = checked.type.startsWith("DECIMAL") ? widthFor(checked.value, checked.type) : null;
      return new RunvaultError(
        "value_out_of_range",
        `${column} of row seq ${checked.seq} is ${shorten(checked.value)}, which ${checked.type} cannot hold`,
        {
          place,
          ...(wider === null
            ? {}
            : { wider: { table: table.name, column: checked.column, type: `DECIMAL(${wider})` } }),
          hint:
            wider !== null
              ? `Archive the run again with \`--widen auto\`, or after \`runvault rebuild --widen ${column}=${wider}\`; a new archive takes \`--decimal ${column}=${wider}\`.`
              : "Have the gateway's operator correct this value: no column type can hold it.",
        },
      );
    }
  }
}

/** `WIDTH,SCALE` of the narrowest decimal that holds the value and all that `type` holds; null where none does. */
function widthFor(value: string, type: string): string | null {
  const [precision = 0, scale = 0] = (type.match(/\d+/g) ?? []).map(Number);
  const [whole = "", fraction = ""] = value.replace(/^-?0*/, "").split(".");
  const wideScale = Math.max(scale, fraction.replace(/0+$/, "").length);
  const width = Math.max(precision - scale, whole.length) + wideScale;
  return width <= 38 ? `${width},${wideScale}` : null;
}
