import { globSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";

const root = resolve(import.meta.dirname, "../..");
const folders = globSync("src/**/*migrations/", { cwd: root }).filter((path) => path.endsWith("migrations"));

test.each(folders)(
  "the migrations in %s are numbered from 1, each once: a store skips a number it has passed",
  (folder) => {
    const numbers = readdirSync(join(root, folder)).map((file) => Number(/^(\d{3})-.*\.sql$/.exec(file)?.[1]));
    expect(numbers.toSorted((one, other) => one - other)).toEqual(numbers.map((_, at) => at + 1));
  },
);
