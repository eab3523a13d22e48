/** The version of profiles that this runvault reads. */
export const profileVersion = 1;
