/**
 * For tests of interruption: `RUNVAULT_KILL_AT=STEP[:N]` kills the process with SIGKILL when it reaches that step of a
 * job for the Nth time, like a power cut. Does nothing without the variable.
 */
export function killStep(env: Readonly<Record<string, string | undefined>>): (name: string) => void {
  const [step, count = "1"] = (env.RUNVAULT_KILL_AT ?? "").split(":");
  if (step === "") return () => {};
  let left = Number(count);
  return (name) => {
    if (name === step && --left === 0) process.kill(process.pid, "SIGKILL");
  };
}
