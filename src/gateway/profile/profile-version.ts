/** The version of profiles that is read. */
export const profileVersion = 1;
