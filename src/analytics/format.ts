/** Forms an answer can be written in; see render.ts. */
export const formats = ["table", "json", "ndjson", "csv"] as const;
export type Format = (typeof formats)[number];
