import { z } from "zod";
import type { ErrorCode } from "../../model/error.ts";
import { fieldPathSchema } from "./field-path-schema.ts";

/** A profile's words for the meanings of errors, with runvault's codes. */
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
  gone: "there is no such run, or no longer",
  unavailable: "the gateway has no such history of this run: the table counts as ABSENT",
  busy: "try again later",
  unreachable: "a server behind the gateway is unreachable",
  refused: "the request was refused, and would be refused again",
  no_instance: "there is no such instance",
  no_resource: "there is no such resource",
  no_route: "there is no such route",
  unauthenticated: "the token or key is missing or wrong",
  forbidden: "the token or key does not allow it",
  misdirected: "the request reached the wrong server",
  too_much: "more was requested than one answer may contain",
  conflict: "the answer would be about another run or instance",
  incomplete: "the gateway's history is incomplete",
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
        .meta({ description: "where error answers have their code", examples: ["error.type"] }),
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
    description: "what error answers mean, by code or status; all others are understood by their HTTP status",
    examples: [{ code: "error.type", gone: ["unknown_execution"] }],
  });
