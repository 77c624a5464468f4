/** Lines of the hub's bench. */
export function quantile(numbers: readonly number[], share: number): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(share * (numbers.length - 1))] ?? Number.NaN;
}

export function row(name: string, ...cells: readonly string[]): string {
  return name.padEnd(36) + cells.map((cell) => cell.padStart(12)).join("");
}

export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
