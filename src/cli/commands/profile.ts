import type { Command } from "commander";
import { z } from "zod";
import { RunvaultError } from "../../model/error.ts";
import { commandEntry } from "../entry/command-entry.ts";
import { addGatewayOptions, gatewayOptionNames, gatewayShape } from "../options/gateway-options.ts";
import { nonEmpty } from "../options/option-values.ts";
import type { Session } from "../process/session.ts";

const actions = ["check", "draft", "show", "schema"] as const;

const schema = z.object({
  ...gatewayShape,
  action: z.enum(actions),
  subject: nonEmpty.optional(),
  openapi: nonEmpty.optional(),
  descriptors: nonEmpty.optional(),
  out: nonEmpty.optional(),
});

/** `runvault profile check [RUN]`, `runvault profile show [default|FILE]` and `runvault profile schema` */
export const profileCommand = commandEntry({
  schema,
  howToGoOn: "Run the same command again.",
  unused: ({ action }) => (action === "check" || action === "draft" ? [] : gatewayOptionNames),
  declare: (command: Command) =>
    addGatewayOptions(
      command
        .description(
          "A profile describes a gateway whose paths, parameters, fields or words differ from what runvault expects; every " +
            "command that asks a gateway takes one with --profile. `check` tests a profile against its gateway with a few " +
            "small requests and lists what is wrong; `draft` starts one from a gateway's paths, lists and rows; `show` prints a whole profile, with what it extends and the " +
            "defaults; `schema` prints the JSON Schema (draft 2020-12) with which editors complete and check " +
            "profiles.",
        )
        .usage(
          "[options] check --gateway url --profile file [run]\n       runvault profile [options] draft --gateway url [run]\n       runvault profile [options] show [default|file]\n" +
            "       runvault profile [options] schema",
        )
        .addArgument(command.createArgument("<action>", "what to do").choices(actions))
        .argument(
          "[subject]",
          `with \`check\`, the run to look at, INSTANCE/RUN (default: the first finished one); with \`draft\`, a run that has rows (default: one from the gateway's lists); with \`show\`, a ` +
            "profile's file, or default for the built-in contract",
        ),
    )
      .option(
        "--openapi <file>",
        "with `draft`, the gateway's OpenAPI document, for its paths and parameters",
      )
      .option(
        "--descriptors <file>",
        "with `draft`, the descriptor set of a gateway's RPC, for its methods and messages",
      )
      .option("-o, --out <file>", "with `draft`, the new file to write (default: standard output)")
      .option("--json", "with `check`, report as JSON; with `show`, print the resolved profile")
      .addHelpText(
        "after",
        `
\`check\` sends at most 12 requests for each table. It shows where each column comes from, with a
value; fields that no column takes; whether the gateway obeys each request: limit, bounds, order,
pages, another run, a run that does not exist; and the proof that each table can reach. Exit
status 0 if nothing is wrong, 4 if something is.

\`draft\` finds a finished run in the lists of instances and runs, asks for a few rows of each
table, and sends at most 60 requests. A comment gives the reason for each guess. If a value ends
in ?, such as the unit of times, confirm or correct it: a profile with such a value does not load.
From --profile it takes only headers, keys and the base path; a file with just these will do.
Their values are never in the draft.

If a profile cannot be used, every fault in it is listed with file, line and column; the
exit status is then 2. \`show\` and \`schema\` ask no gateway.

Examples:
  runvault profile check --gateway https://acme.example --profile acme.yaml
  runvault profile check --gateway https://acme.example --profile acme.yaml alpha-1/2022-01-01-001
  runvault profile draft --gateway https://acme.example -o acme.yaml
  runvault profile draft --gateway https://acme.example --openapi openapi.yaml --profile keys.yaml
  runvault profile draft --gateway https://acme.example --descriptors acme.pb alpha-1/2022-01-01-001
  runvault profile show default
  runvault profile show acme.yaml
  runvault profile schema > profile.schema.json

The first line of a profile beside it is then:
  # yaml-language-server: $schema=./profile.schema.json
`,
      ),
  run: profile,
});

async function profile(values: z.output<typeof schema>, session: Session): Promise<number> {
  const { action, subject } = values;
  switch (action) {
    case "check": {
      const { checkAndTell } = await import("../profile/check-and-tell.ts");
      return await checkAndTell(subject, values, session);
    }
    case "draft": {
      const { writeProfileDraft } = await import("../profile/write-profile-draft.ts");
      return await writeProfileDraft(subject, values, session);
    }
    case "show": {
      const { showProfile } = await import("../profile/show-profile.ts");
      return await showProfile(subject ?? "default", session);
    }
    case "schema": {
      refuseSubject(action, subject);
      const { printProfileSchema } = await import("../profile/print-profile-schema.ts");
      return await printProfileSchema(session);
    }
  }
}

function refuseSubject(action: string, subject: string | undefined): void {
  if (subject === undefined) return;
  throw new RunvaultError("invalid_argument", `${JSON.stringify(subject)} is one argument too many`, {
    hint: `\`runvault profile ${action}\` takes none.`,
  });
}
