import { type JsonSchema, plainJsonSchema } from "../../model/yaml/json-schema.ts";
import { profileSchema } from "./profile-schema.ts";

/** The JSON Schema of profiles (draft 2020-12), with each repeated part defined once. */
export function profileJsonSchema(): JsonSchema {
  return plainJsonSchema(profileSchema, "ref");
}
