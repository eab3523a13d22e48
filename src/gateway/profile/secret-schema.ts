import { z } from "zod";
import { headerNamePattern } from "../options.ts";

const variable = z
  .string({ error: "must be the name of an environment variable" })
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be the name of an environment variable")
  .optional()
  .meta({ description: "environment variable that holds the value" });
const file = z
  .string({ error: "must be the path of a file" })
  .min(1, "must not be empty")
  .optional()
  .meta({ description: "file that contains only the value, relative to the profile's folder" });

export const secretMust = "must be { env: NAME } or { file: PATH }";

const oneOfTwo = { oneOf: [{ required: ["env"] }, { required: ["file"] }] };

const header = z.strictObject({ env: variable, file }, { error: secretMust }).check(hasOne).meta(oneOfTwo);

/** Headers by name; their values are never in the profile. */
export const headersSchema = z
  .record(z.string(), header, { error: "must be a map of headers" })
  .meta({ propertyNames: { pattern: headerNamePattern.source } });

const key = z
  .strictObject(
    {
      env: variable,
      file,
      in_address: z
        .literal(true, { error: "must be true" })
        .optional()
        .meta({ description: "confirms that the value may be in addresses, which proxies and servers log" }),
    },
    { error: secretMust },
  )
  .check(hasOne)
  .check((context) => {
    if (context.value.in_address === true) return;
    context.issues.push({
      code: "custom",
      path: [],
      message: "would be in addresses, which proxies and servers log",
      params: {
        hint: "Send it as a header if the gateway accepts one; otherwise add `in_address: true`.",
      },
      input: context.value,
    });
  })
  .meta({ ...oneOfTwo, required: ["in_address"] });

/** Query parameters that carry a secret. */
export const keysSchema = z.record(z.string().min(1), key, { error: "must be a map of parameters" });

function hasOne({
  value,
  issues,
}: z.core.ParsePayload<{ env?: string | undefined; file?: string | undefined }>): void {
  if ((value.env === undefined) !== (value.file === undefined)) return;
  issues.push({ code: "custom", path: [], message: secretMust, input: value });
}
