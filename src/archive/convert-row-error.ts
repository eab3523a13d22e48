import { type ErrorPlace, RunvaultError } from "../model/error.ts";
import { type CheckedLine, type LineRules, shorten } from "./convert-line.ts";

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
        `row seq ${checked.seq} has ${checked.column} ${shorten(checked.value)}, asked for was ${shorten(wanted)}`,
        { place, hint: "The gateway answered with rows of another run; nothing of this table was kept." },
      );
    }
    case "range": {
      const column = `${table.name}.${checked.column}`;
      const wider = checked.type.startsWith("DECIMAL");
      return new RunvaultError(
        "value_out_of_range",
        `${column} of row seq ${checked.seq} is ${shorten(checked.value)}, which ${checked.type} cannot hold`,
        {
          place,
          hint: wider
            ? `Archive with \`archive --widen auto\`, or widen the column with \`rebuild --widen ${column}\`.`
            : "No column type of the archive can hold this value; the gateway has to correct it.",
        },
      );
    }
  }
}
