/** Reads the file of `--provision`: a template, as triggers have it, or a table of sites, sources and variables. */
import { basename, extname } from "node:path";
import { loadDocument } from "#core/config/document.ts";
import { ConfigError, wordsOf } from "#core/errors.ts";
import { invalidOption } from "#core/invalid-option.ts";
import { readRows } from "#mapping/readers/master-data/rows.ts";
import { type ProvisionTemplate, provisionTemplate } from "../../provisioning/options.ts";
import { readTable, TABLE_RULES } from "../../provisioning/table.ts";
import type { Wanted } from "../../provisioning/wanted.ts";

export type ProvisionFile =
  | { readonly kind: "template"; readonly template: ProvisionTemplate }
  | { readonly kind: "table"; readonly wanted: readonly Wanted[] };

/** Throws `ConfigError` when the file cannot be read, or is ambiguous (HG-MIGR-020, HG-CONF-002). */
export async function readProvisionFile(path: string, signal: AbortSignal): Promise<ProvisionFile> {
  const extension = extname(path).toLowerCase();
  if (extension === ".yaml" || extension === ".yml")
    return { kind: "template", template: loadDocument(path, provisionTemplate) };
  if (extension !== ".csv" && extension !== ".xlsx")
    throw invalidOption("--provision", `${path} is neither a template (.yaml) nor a table (.csv, .xlsx)`);
  const file = { path, fileName: basename(path), settings: { encoding: "utf-8" }, rules: TABLE_RULES };
  const rows = await readRows(file, signal).catch((thrown: unknown) => {
    if (signal.aborted) throw thrown;
    throw new ConfigError("HG-MIGR-020", {
      operation: "read master data",
      subject: path,
      message: `${path} cannot be read: ${wordsOf(thrown)}`,
      cause: thrown,
    });
  });
  return { kind: "table", wanted: readTable(file.fileName, rows) };
}
