import type { JsonSchema } from "./json-schema.ts";

/** A kind of file that people write: what messages need to know of it. */
export interface FileKind {
  /** With its article: `a job file`. */
  readonly name: string;
  readonly schema: JsonSchema;
  /** A sentence that says where all that it may have is told. */
  readonly reference: string;
  /** The nearest right value to a wrong one, by the word that a fault of the schema names in `near`. */
  readonly nearest?: Readonly<Record<string, (value: string) => string | null>>;
  /** What to say of a key whose value must not be shown, or is wrong in a way that the schema knows nothing of. */
  ownFault?(
    key: string,
    message: string,
    isCustom: boolean,
  ): { readonly message: string; readonly hint: string } | null;
}
