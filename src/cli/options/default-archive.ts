/** The archive folder where none is named. In a file of its own: every command's start needs it, and no option. */
export const defaultArchive = "archive";
