/** The file trigger (specification, *Stored file record and file trigger*), in camelCase. */
import { z } from "zod";

export const FILTER_TYPES = [
  "Contains",
  "StartsWith",
  "EndsWith",
  "Equals",
  "NotContains",
  "NotStartsWith",
  "NotEndsWith",
  "NotEquals",
] as const;
export type FilterType = (typeof FILTER_TYPES)[number];

export const INGESTION_TYPES = ["SendViaFtp", "UploadInStorage", "SendViaHttp"] as const;
export type IngestionType = (typeof INGESTION_TYPES)[number];

export const TRIGGER_STATES = ["Active", "Inactive", "Deleted", "Updated"] as const;
export const TRIGGER_COMBINATIONS = ["And", "Or"] as const;
export const TRIGGER_TYPES = ["Added"] as const;
/** Platform facts, *Files and triggers*. */
export const FILE_TYPES = [
  "OpisenseStandard",
  "OpisenseMasterData",
  "CustomFormat",
  "OpisenseManualLoad",
  "IndexIs",
] as const;

export const fileNamePattern = z.strictObject({
  filterType: z.enum(FILTER_TYPES),
  value: z.string().min(1),
});
export type FileNamePattern = z.infer<typeof fileNamePattern>;

export const fileTrigger = z.strictObject({
  fileNamePatternMatches: z.array(fileNamePattern),
  fileTriggerCombination: z.enum(TRIGGER_COMBINATIONS).default("And"),
  fileType: z.enum(FILE_TYPES).default("CustomFormat"),
  ingestionType: z.enum(INGESTION_TYPES).default("SendViaFtp"),
  triggerType: z.enum(TRIGGER_TYPES).default("Added"),
  state: z.enum(TRIGGER_STATES).default("Active"),
  token: z.guid().optional(),
  metadata: z.record(z.string(), z.unknown()).default({}),
});
export type FileTrigger = z.infer<typeof fileTrigger>;
