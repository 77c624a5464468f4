/** The numbered SQL files that bring a schema up. */
import { readdirSync } from "node:fs";

export interface Migration {
  readonly version: number;
  /** Name of the file. */
  readonly file: string;
}

/** In the order of their numbers. */
export function migrationsIn(folder: string): readonly Migration[] {
  return readdirSync(folder)
    .filter((file) => /^\d{3}-.*\.sql$/.test(file))
    .sort()
    .map((file) => ({ version: Number(file.slice(0, 3)), file }));
}
