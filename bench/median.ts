export function medianOf(numbers: readonly number[]): number {
  const ordered = numbers.toSorted((one, other) => one - other);
  const middle = (ordered.length - 1) / 2;
  return ((ordered[Math.floor(middle)] ?? Number.NaN) + (ordered[Math.ceil(middle)] ?? Number.NaN)) / 2;
}
