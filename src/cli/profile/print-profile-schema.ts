import { profileJsonSchema } from "../../gateway/profile/profile-json-schema.ts";
import { exit } from "../../model/error.ts";
import type { Session } from "../process/session.ts";

/** Prints the JSON Schema of profiles. */
export async function printProfileSchema(session: Session): Promise<number> {
  await session.print(`${JSON.stringify(profileJsonSchema(), null, 2)}\n`);
  return exit.done;
}
