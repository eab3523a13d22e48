import { type RowForm, rowForms } from "../../model/row-answer.ts";
import type { RowEncoding } from "../http/body-sink.ts";

const mediaTypes = (Object.keys(rowForms) as RowForm[]).map(
  (form) => [rowForms[form].split(";", 1)[0]!, form] as const,
);

/**
 * The row formats in an Accept header, best first, then NDJSON, with which a gateway always answers. A wildcard
 * requests nothing in particular.
 */
export function acceptedForms(header: string | undefined): RowForm[] {
  const named = weighted(header).flatMap(({ name, weight }) => {
    const form = mediaTypes.find(([type]) => type === name)?.[1];
    return form === undefined || weight === 0 ? [] : [{ form, weight }];
  });
  return [...named.sort((a, b) => b.weight - a.weight).map(({ form }) => form), "ndjson"];
}

/** zstd before gzip before nothing, among what the client accepts. */
export function acceptedEncoding(header: string | string[] | undefined): RowEncoding {
  const accepted = weighted(String(header ?? "")).filter(({ weight }) => weight > 0);
  const found = (["zstd", "gzip"] as const).find((coding) => accepted.some(({ name }) => name === coding));
  return found ?? "identity";
}

/** The offered media type with the most weight in an Accept header; the first if it names none. */
export function acceptedType<Type extends string>(
  header: string | undefined,
  offered: readonly [Type, ...Type[]],
): Type {
  const named = weighted(header).filter(({ weight }) => weight > 0);
  const [best] = named
    .sort((a, b) => b.weight - a.weight)
    .flatMap(({ name }) => {
      return offered.filter((type) => type === name);
    });
  return best ?? offered[0];
}

/** The items of a header, each with its `q`, by default 1. */
function weighted(header = ""): { readonly name: string; readonly weight: number }[] {
  return header
    .toLowerCase()
    .split(",")
    .map((part) => {
      const [name = "", ...parameters] = part.split(";").map((text) => text.trim());
      const weight = parameters.map((text) => /^q\s*=\s*([\d.]+)$/.exec(text)?.[1]).find(Boolean);
      return { name, weight: weight === undefined ? 1 : Number(weight) || 0 };
    });
}
