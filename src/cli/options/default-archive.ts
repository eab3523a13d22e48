/** The default archive folder. In a separate file because every command needs it at its start. */
export const defaultArchive = "archive";
