import { z } from "zod";
import type { ErrorCode } from "../../model/error.ts";
import { fieldPathSchema } from "./field-path-schema.ts";

/** A profile's words for the meanings of errors, and their codes. */
export const errorWords = {
  gone: "run_not_found",
  unavailable: "history_unavailable",
  busy: "rate_limited",
  unreachable: "history_unreachable",
  refused: "refused",
  no_instance: "instance_not_found",
  no_resource: "resource_not_found",
  no_route: "route_not_found",
  unauthenticated: "unauthenticated",
  forbidden: "permission_denied",
  misdirected: "misdirected",
  too_much: "limit_exceeded",
  conflict: "history_identity_conflict",
  incomplete: "incomplete",
  failed: "history_query_failed",
} as const satisfies Record<string, ErrorCode>;
export type ErrorWord = keyof typeof errorWords;

const meanings: Readonly<Record<ErrorWord, string>> = {
  gone: "there is no such run, or not any more",
  unavailable: "the gateway has no such history of this run: a table that answers so counts as ABSENT",
  busy: "it may be asked again later",
  unreachable: "what is behind the gateway cannot be reached just now",
  refused: "the request is not taken, and would not be the next time",
  no_instance: "there is no such instance",
  no_resource: "there is no such resource",
  no_route: "there is no such route",
  unauthenticated: "the token or key is missing or wrong",
  forbidden: "the token or key does not allow it",
  misdirected: "the request came to a server that is not meant",
  too_much: "more was asked for than one answer may hold",
  conflict: "the answer would be of another run or instance",
  incomplete: "the gateway does not have all of it",
  failed: "the gateway's query failed",
};

const code = z.union([z.string().min(1), z.int().min(400).max(599)], {
  error: "must be a code of the gateway, or a status from 400 to 599",
});

/** The meaning of error answers. */
export const errorsSchema = z
  .strictObject(
    {
      code: fieldPathSchema
        .optional()
        .meta({ description: "where an error answer has its code", examples: ["error.type"] }),
      ...(Object.fromEntries(
        Object.entries(meanings).map(([word, meaning]) => [
          word,
          z
            .array(code, { error: "must be a list of codes" })
            .optional()
            .meta({ description: `codes or statuses that mean: ${meaning}` }),
        ]),
      ) as Record<ErrorWord, z.ZodOptional<z.ZodArray<typeof code>>>),
    },
    { error: "must be a map of keys and values" },
  )
  .meta({
    description: "what error answers mean, by their code or status; others go by their status as usual",
    examples: [{ code: "error.type", gone: ["unknown_execution"] }],
  });
