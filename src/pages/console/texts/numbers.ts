/** Numbers with their noun. */
export function plural(value: number, one: string, more: string): string {
  return value === 1 ? one : more;
}

export function many(value: number, one: string, more: string): string {
  return `${value.toLocaleString()} ${plural(value, one, more)}`;
}

export function files(value: number): string {
  return many(value, "file", "files");
}
