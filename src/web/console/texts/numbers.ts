/** Numbers with their noun. */
export function many(value: number, one: string, more: string): string {
  return `${value.toLocaleString()} ${value === 1 ? one : more}`;
}

export function files(value: number): string {
  return many(value, "file", "files");
}
