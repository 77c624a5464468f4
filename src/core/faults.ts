/**
 * Named points at which a test may end the real process as a power cut would (SIGKILL).
 * Nothing is armed unless `main.ts` arms it from `HEADGATE_FAULT`, so a call costs one comparison.
 */
let armed: { name: string; after: number } | null = null;
let specified: string | undefined;

/** `NAME` or `NAME#N`: end the process at the N-th time that this point is passed. */
export function armFault(specification: string): void {
  specified = specification;
  const [name = "", count = "1"] = specification.split("#");
  armed = { name, after: Number(count) };
}

/** Whether a point is armed: a caller that builds many names checks it first. */
export function isFaultArmed(): boolean {
  return armed !== null;
}

/** The armed specification, for threads of this process, which arm themselves. */
export function armedFault(): string | undefined {
  return specified;
}

export function faultPoint(name: string): void {
  if (armed === null || armed.name !== name) return;
  armed.after -= 1;
  if (armed.after <= 0) process.kill(process.pid, "SIGKILL");
}
