import { pathText } from "../field-path-schema.ts";
import type { RpcFile } from "./rpc-schema.ts";

/** `rpc` in the form of a profile. */
export function rpcDocument(file: RpcFile, descriptors: string): object {
  const { errors, ...rest } = file;
  return {
    ...(plain(rest) as object),
    ...(errors === undefined ? {} : { errors: withoutNothing(errors) }),
    descriptors,
  };
}

/** Paths become dotted names, and undefined values are removed. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.length === 0 ? value : pathText(value as string[]);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(withoutNothing(value)).map(([key, inside]) => [
      key,
      key === "fixed" || key === "given" ? inside : plain(inside),
    ]),
  );
}

function withoutNothing(value: object): object {
  return Object.fromEntries(Object.entries(value).filter(([, inside]) => inside !== undefined));
}
