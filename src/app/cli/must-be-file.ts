/** Checks an argument that has to name a file. */
import { stat } from "node:fs/promises";
import { ConfigError, systemCode } from "#core/errors.ts";

/** Throws a `ConfigError` unless the path is a file that can be read repeatedly. */
export async function mustBeFile(operation: string, path: string): Promise<void> {
  const facts = { operation, subject: path };
  const hint = "Name one file, such as samples/drops/local/standard_building_2026-03.csv.";
  if (path.trim() === "")
    throw new ConfigError("HG-CLI-001", { ...facts, message: "the name of the file is empty", hint });
  let isFolder: boolean;
  try {
    const found = await stat(path);
    if (found.isFile()) return;
    isFolder = found.isDirectory();
  } catch (cause) {
    const message = systemCode(cause) === "ENOENT" ? "there is no such file" : "the file cannot be read";
    throw new ConfigError("HG-CLI-001", { ...facts, message, hint, cause });
  }
  const message = isFolder
    ? "this is a directory, not a file"
    : "this is a device or a pipe, not a file: it cannot be read twice";
  throw new ConfigError("HG-CLI-001", { ...facts, message, hint });
}
