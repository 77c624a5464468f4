import leven from "leven";

/** The nearest of the names, when it is near enough to be a typing error. */
export function nearestName(name: string, names: readonly string[]): string | undefined {
  const scored = names.map((candidate) => ({
    candidate,
    distance: leven(name.toLowerCase(), candidate.toLowerCase()),
  }));
  scored.sort((a, b) => a.distance - b.distance);
  const best = scored[0];
  return best !== undefined && best.distance <= Math.max(2, name.length / 3) ? best.candidate : undefined;
}
