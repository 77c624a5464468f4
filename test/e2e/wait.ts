/** Waiting for a state, never for a time. */
const LOOK_EVERY_MS = 20;

/** Asks again until there is an answer (not null, undefined or false). */
export async function until<T>(
  what: string,
  ask: () => T | null | undefined | false | Promise<T | null | undefined | false>,
  hangMs = 90_000,
): Promise<T> {
  const deadline = performance.now() + hangMs;
  for (;;) {
    const answer = await ask();
    if (answer !== null && answer !== undefined && answer !== false) return answer;
    if (performance.now() > deadline) throw new Error(`waited ${hangMs} ms in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
}

/** At most so many at once, first come, first served. */
export function atMost(places: number): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = [];
  let free = places;
  return async (work) => {
    if (free === 0) await new Promise<void>((resolve) => waiting.push(resolve));
    else free -= 1;
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next === undefined) free += 1;
      else next();
    }
  };
}

/** Real processes on a busy machine: only what hangs takes so long. */
export const PATIENTLY = { testTimeout: 120_000, hookTimeout: 120_000 } as const;
