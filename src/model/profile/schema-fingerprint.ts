import type { Table } from "./table.ts";

const namedForm = "fields:";

/**
 * The schema fingerprint that names a table's fields, in the order of the canonical line and with their protobuf types.
 * A row checksum can be compared with ours only beside exactly this one: of a row with other fields, or with other
 * types, the line is another.
 */
export function fieldsFingerprint({ columns }: Pick<Table, "columns">): string {
  return `${namedForm}${columns.map(({ name, scalar }) => `${name}:${scalar}`).join(",")}`;
}

/** Whether a fingerprint names the fields; any other is opaque. */
export function namesFields(fingerprint: string): boolean {
  return fingerprint.startsWith(namedForm);
}

/**
 * Whether two fingerprints are of other columns. Of an opaque one and one that names the fields nobody can tell: a gateway
 * changes from one form to the other when it learns row checksums.
 */
export function isOtherSchema(a: string, b: string): boolean {
  return a !== b && namesFields(a) === namesFields(b);
}
