import { type Command, Option } from "commander";
import { z } from "zod";
import { tableStates } from "../../archive/manifest/manifest.ts";
import { parseInstance } from "../../model/run-argument.ts";
import { nearestName } from "../../model/text/nearest-name.ts";
import { commandEntry } from "../entry/command-entry.ts";
import type { ListedState } from "../list/list-runs.ts";
import { archiveOption, archiveShape, scratchOption, scratchShape } from "../options/archive-option.ts";
import { addGatewayOptions, gatewayOptionNames, gatewayShape } from "../options/gateway-options.ts";
import { httpAddress } from "../options/option-values.ts";
import type { Session } from "../process/session.ts";

const listedStates: readonly ListedState[] = [...tableStates, "pending", "damaged"];

/** Parses `INCOMPLETE,pending` into states, in any case, each once. */
const stateList = z.string().transform((text, context) => {
  const states = text.split(",").map((word) => {
    const typed = word.trim();
    const state = listedStates.find((known) => known.toLowerCase() === typed.toLowerCase());
    if (state !== undefined) return state;
    const near = nearestName(typed, listedStates);
    const meant = near === null ? "" : ` (did you mean ${near}?)`;
    context.addIssue(
      `names an unknown state: ${JSON.stringify(typed)}${meant}; the states are ${listedStates.join(", ")}`,
    );
    return z.NEVER;
  });
  return [...new Set(states)];
});

const schema = z.object({
  ...archiveShape,
  ...scratchShape,
  ...gatewayShape,
  gateway: z.union([httpAddress, z.literal(true)], "must be an http:// or https:// address").optional(),
  instance: z.string().optional(),
  state: stateList.optional(),
  wide: z.boolean().default(false),
});

/** `runvault runs` */
export const runsCommand = commandEntry({
  schema,
  howToGoOn: "Run the same command again.",
  unused: ({ gateway }) => (gateway === undefined ? gatewayOptionNames : ["scratch"]),
  declare: (command: Command) =>
    addGatewayOptions(
      command
        .description(
          "Lists the runs of the archive with their states, and those with pending work: fetched but not committed. " +
            "With --gateway, those that a gateway lists.",
        )
        .argument("[instance]", "only runs of this instance")
        .addOption(archiveOption())
        .addOption(scratchOption())
        .addOption(
          new Option("--gateway [url]", "list a gateway's runs; without URL, those of RUNVAULT_GATEWAY"),
        )
        .addOption(
          new Option(
            "--state <states>",
            "only runs in these states, such as INCOMPLETE,OPEN; pending: those with work that is not committed",
          ).conflicts("gateway"),
        )
        .option(
          "--wide",
          "every column, names in full even if they do not fit the terminal, and, with a profile, how each table's rows " +
            "were fetched",
        )
        .option("--json", 'an object {"runs": […]}'),
      false,
    ).addHelpText(
      "after",
      `
Size is that of the committed files. A table whose latest attempt failed is named below the list,
with what is still shown of it, since when and why; so is pending work, with the command that
continues it. A run with nothing committed yet has the state pending, one whose manifest cannot be
read the state damaged (exit status 5).
With --json every table of an archived run has state, and for what is proven: proven (its state),
proof, rows, setAside and until (the ts_event up to which an OPEN table is proven, in nanoseconds);
behindSince, error (a code) and reason describe the latest attempt, and are null if it succeeded;
accepted (at, by and reason) is there where runvault maintain accept keeps a table as it is.

Examples:
  runvault runs
  runvault runs --state INCOMPLETE,UNVERIFIED,pending
  runvault runs --gateway http://127.0.0.1:8080/api/v1 --json
`,
    ),
  run: runs,
});

async function runs(values: z.output<typeof schema>, session: Session): Promise<number> {
  const instanceId = values.instance === undefined ? undefined : parseInstance(values.instance);
  const { gateway } = values;
  if (gateway === undefined) {
    const { listRuns } = await import("../list/list-runs.ts");
    return await listRuns(instanceId, values, session);
  }
  // so that listing an archive starts without the gateway client
  const { listGatewayRuns } = await import("../list/list-gateway-runs.ts");
  return await listGatewayRuns(instanceId, { ...values, gateway }, session);
}
