/** A clock that stands still while a mapper is tested: the same bytes have to give the same readings at any time. */
import { mock } from "node:test";

/** 2001-01-01T00:00:00Z: far from the dates of any real file, so that a use of the clock by a mapper shows. */
export const FIXED_MS = Date.UTC(2001, 0, 1);

let held = 0;

/** `Date` shows `atMs` until the work is done; in nested calls the outer clock stays. */
export async function withFixedClock<T>(work: () => Promise<T>, atMs: number = FIXED_MS): Promise<T> {
  if (held === 0) mock.timers.enable({ apis: ["Date"], now: atMs });
  held += 1;
  try {
    return await work();
  } finally {
    held -= 1;
    if (held === 0) mock.timers.reset();
  }
}
