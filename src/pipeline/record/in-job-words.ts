/**
 * Rewrites a hint for users of job files: command line options become keys of the file, or options of another command.
 */
export function inJobWords(hint: string): string {
  return hint
    .replaceAll("--gateway or RUNVAULT_GATEWAY", "`gateway.url` in the job file")
    .replaceAll("--token-file or RUNVAULT_TOKEN_FILE", "`gateway.token` in the job file")
    .replaceAll("--max-rps", "`gateway.budget.rps`")
    .replaceAll("--token-header", "`gateway.token_header`")
    .replaceAll("--archive or RUNVAULT_ARCHIVE", "`archive` in the job file")
    .replaceAll("--transport rest", "`gateway.transport: rest`")
    .replaceAll("Leave out --require", "Leave out `require`")
    .replace(
      /(run again with )?(--accept-(?:shrink|quarantine))/g,
      (_, again: string | undefined, option: string) =>
        `${again === undefined ? "" : "run "}\`runvault archive INSTANCE/RUN ${option}\``,
    );
}
