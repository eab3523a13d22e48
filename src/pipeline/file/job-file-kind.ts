import { nearestZone } from "../../model/text/time-zone.ts";
import type { FileKind } from "../../model/yaml/file-kind.ts";
import { exampleOf } from "../../model/yaml/issue-faults.ts";
import { plainJobJsonSchema } from "./job-json-schema.ts";

/** Keys that name the variable of a secret. If someone writes the secret itself there, no error shows it. */
const secretNames = /^gateway\.token\.env$|\.url_env$/;

/** What error messages need to know about job files. */
export function jobFileKind(): FileKind {
  const schema = plainJobJsonSchema();
  return {
    name: "a job file",
    schema,
    reference: "`runvault schema pipeline` prints what a job file may have.",
    nearest: { zones: nearestZone },
    ownFault: (key, message, isCustom) => {
      if (secretNames.test(key) && !isCustom) {
        const example = exampleOf(key.split("."), schema);
        return {
          message: `${key} ${message}`,
          hint: `Put it into an environment variable, and name that variable here, for example \`${example}\`.`,
        };
      }
      if (key === "gateway.token") {
        return {
          message: `${key} must be { file: PATH } or { env: NAME }: a token itself does not belong in a job file`,
          hint: "Write the token into a file that only its user can read (chmod 600), and name that file.",
        };
      }
      return null;
    },
  };
}
