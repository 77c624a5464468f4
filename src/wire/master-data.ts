/**
 * The report on the rows of a file of master data, and the settings of the triggers that take such files
 * (`docs/master-data.md`).
 */
import { z } from "zod";
import { caseless, inOrder, listOf, paging } from "./caseless.ts";

/** The file type whose files change structure, and bring no readings. */
export const MASTER_DATA = "OpisenseMasterData";
/** Files with this tag are templates for master data (specification, *Storage endpoints*). */
export const TEMPLATE_TAG = "MasterDataTemplate";

export const ROW_RESULTS = ["created", "changed", "unchanged", "refused"] as const;
export type RowResult = (typeof ROW_RESULTS)[number];

export const MASTER_DATA_ENTITIES = ["site", "source", "variable", "user"] as const;
export type MasterDataEntity = (typeof MASTER_DATA_ENTITIES)[number];

/** `metadata` of a trigger of the type OpisenseMasterData. */
export const masterDataSettings = z.strictObject({
  dryRun: z.boolean().default(false).describe("Only reports what the file would change."),
  delimiter: z.string().min(1).max(1).optional().describe("Of a CSV file; found in its header when left out."),
  encoding: z.string().min(1).default("utf-8").describe("Of a CSV file without a byte order mark."),
});
export type MasterDataSettings = z.output<typeof masterDataSettings>;

const reportedEntity = z.object({
  entity: z.enum(MASTER_DATA_ENTITIES),
  key: z.string().describe("What names it in the file."),
  id: z.int().nullable().describe("Null while it does not exist."),
  result: z.enum(ROW_RESULTS),
  fields: z.array(z.string()).describe("Those that were set or changed."),
});
export type ReportedEntity = Readonly<z.infer<typeof reportedEntity>>;

export const reportedRow = z.object({
  sheet: z.string().nullable(),
  row: z.int().describe("As a spreadsheet numbers it, the header included."),
  result: z.enum(ROW_RESULTS),
  entities: z.array(reportedEntity).describe("Those that the row names first, or describes itself."),
  reasons: z.array(z.object({ column: z.string().nullable(), message: z.string() })).describe("Why it is refused."),
  notes: z.array(z.string()),
});
export type ReportedRow = Readonly<z.infer<typeof reportedRow>>;

export const rowCounts = z.object({ created: z.int(), changed: z.int(), unchanged: z.int(), refused: z.int() });
export type RowCounts = Readonly<z.infer<typeof rowCounts>>;

export const masterDataReport = z.object({
  fileId: z.int(),
  fileName: z.string().describe("Of the stored file, or of the file in a container."),
  date: z.string(),
  dryRun: z.boolean(),
  applied: z.boolean().describe("False: nothing was changed, and the results say what would have been."),
  rows: rowCounts,
  items: z.array(reportedRow),
});
export type MasterDataReport = z.infer<typeof masterDataReport>;

const rowsQuery = {
  Result: listOf(inOrder(ROW_RESULTS)).optional().describe("Only rows with these results."),
  ...paging,
};

/** GET /storage/{id}/report. */
export const masterDataReportQuery = caseless(
  z.object({
    File: z.string().optional().describe("Name of the file in a container, which has several."),
    ...rowsQuery,
  }),
);

/** POST /storage/{id}/dryRun. */
export const dryRunQuery = caseless(
  z.object({
    Delimiter: z.string().min(1).max(1).optional().describe("Of a CSV file; found in its header when left out."),
    Encoding: z.string().min(1).default("utf-8").describe("Of a CSV file without a byte order mark."),
    ...rowsQuery,
  }),
);
