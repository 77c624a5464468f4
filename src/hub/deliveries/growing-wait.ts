/** Waits that double with each failed attempt, up to a longest one. */

const DOUBLINGS_MAX = 30;

/** Milliseconds after so many attempts that had failed before this one. */
export function growingWait(
  { backoff, backoffMax }: { readonly backoff: number; readonly backoffMax: number },
  attempts: number,
): number {
  return Math.min(backoff * 2 ** Math.min(attempts, DOUBLINGS_MAX), backoffMax);
}
