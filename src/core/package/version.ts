import { readFileSync } from "node:fs";

/** The version of this package, such as `0.1.0`. */
export function packageVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL("../../../package.json", import.meta.url), "utf8")) as {
    version: string;
  };
  return version;
}
