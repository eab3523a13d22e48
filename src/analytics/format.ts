/** Forms of text an answer can be written in; see render.ts. */
export const textFormats = ["table", "json", "ndjson", "csv"] as const;
export type Format = (typeof textFormats)[number];

/** Every form of an answer: text, or an Arrow IPC stream. */
export const formats = [...textFormats, "arrow"] as const;
