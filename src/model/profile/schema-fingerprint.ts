import type { Table } from "./table.ts";

const namedForm = "fields:";

/**
 * The schema fingerprint that lists a table's fields, in the order of the canonical line and with their protobuf types.
 * A row checksum can be compared with ours only if it has exactly this one: other fields or types make other lines.
 */
export function fieldsFingerprint({ columns }: Pick<Table, "columns">): string {
  return `${namedForm}${columns.map(({ name, scalar }) => `${name}:${scalar}`).join(",")}`;
}

/** Whether a fingerprint names the fields; any other is opaque. */
export function namesFields(fingerprint: string): boolean {
  return fingerprint.startsWith(namedForm);
}

/**
 * Whether two fingerprints are of different columns. Unknown for an opaque one and one that lists fields: a gateway
 * switches forms when it starts to support row checksums.
 */
export function isOtherSchema(a: string, b: string): boolean {
  return a !== b && namesFields(a) === namesFields(b);
}
