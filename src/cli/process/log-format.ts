/** Forms of log lines. */
export const logFormats = ["text", "json"] as const;
export type LogFormat = (typeof logFormats)[number];
