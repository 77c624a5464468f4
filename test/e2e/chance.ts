/** Chance that can be had again: everything random in a test comes from one seed, which it prints. */

/** Numbers from 0 to 1 (mulberry32). */
export function chanceOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** `HEADGATE_SEED` plays the rounds of an earlier time again. */
export function seedOf(name: string): number {
  const seed = Number(process.env["HEADGATE_SEED"] ?? Math.trunc(Math.random() * 2 ** 31));
  process.stderr.write(`${name}: HEADGATE_SEED=${seed}\n`);
  return seed;
}

/** `HEADGATE_ROUNDS` asks for more rounds than the tests ordinarily play. */
export function roundsOf(ordinarily: number): number {
  return Number(process.env["HEADGATE_ROUNDS"] ?? ordinarily);
}
