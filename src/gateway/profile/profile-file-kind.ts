import type { FileKind } from "../../model/yaml/file-kind.ts";
import { type JsonSchema, plainJsonSchema } from "../../model/yaml/json-schema.ts";
import { profileSchema } from "./profile-schema.ts";
import { secretHere } from "./request-schema.ts";
import { secretMust } from "./secret-schema.ts";

let plain: JsonSchema | undefined;

/** What error messages need to know about profiles. */
export function profileFileKind(): FileKind {
  plain ??= plainJsonSchema(profileSchema);
  return {
    name: "a profile",
    schema: plain,
    reference: "`runvault profile schema` shows what a profile may contain.",
    ownFault: (key, message, isCustom) => {
      if (message === secretHere) {
        return {
          message: `${key} ${message}`,
          hint: "Send it as a header whose value comes from the environment or a file, or put it under rest.keys.",
        };
      }
      // a secret written in the file must not appear in the error
      const [, section] = /^(headers|rest\.keys)\../.exec(key) ?? [];
      if (section === undefined || (isCustom && message !== secretMust)) return null;
      if (key.endsWith(".env")) {
        return {
          message: `${key} ${message}`,
          hint: "Put the value into an environment variable, and name the variable here, for example `env: GATEWAY_KEY`.",
        };
      }
      return {
        message: `${key} ${section === "headers" ? secretMust : `${secretMust}, with in_address: true`}: a profile must not contain the value itself`,
        hint: "Put the value into an environment variable or a private file, and name that here.",
      };
    },
  };
}
