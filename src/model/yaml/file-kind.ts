import type { JsonSchema } from "./json-schema.ts";

/** A kind of file that people write: what error messages need to know about it. */
export interface FileKind {
  /** With its article: `a job file`. */
  readonly name: string;
  readonly schema: JsonSchema;
  /** A sentence that says where its contents are documented. */
  readonly reference: string;
  /** The nearest right value, by the word that a fault of the schema has in `near`. */
  readonly nearest?: Readonly<Record<string, (value: string) => string | null>>;
  /** The message for a key whose value must not be shown, or is wrong in a way that the schema does not know. */
  ownFault?(
    key: string,
    message: string,
    isCustom: boolean,
  ): { readonly message: string; readonly hint: string } | null;
}
