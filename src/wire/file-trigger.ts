/**
 * File triggers as the service shows and takes them (specification, *Stored file record and file trigger* and *File
 * trigger endpoints*). The specification shows no field for the mapper: here it is `mapping`
 * (`docs/hub/files.md`, *File triggers*).
 */
import { z } from "zod";
import { caseless, inOrder, listOf, nameText, paging, queryInteger } from "./caseless.ts";
import {
  FILE_TYPES,
  FILTER_TYPES,
  fileNamePattern,
  INGESTION_TYPES,
  TRIGGER_COMBINATIONS,
  TRIGGER_STATES,
  TRIGGER_TYPES,
} from "./trigger.ts";

export const PATTERNS_MAX = 50;
/** Characters; no file system has longer names. */
export const PATTERN_VALUE_MAX = 255;
/** Characters of the JSON text. */
export const METADATA_MAX = 65_536;
/** Ids, or names of entries, of one call. */
const IDS_MAX = 1_000;

const metadata = z
  .record(z.string(), z.unknown())
  .refine((settings) => JSON.stringify(settings).length <= METADATA_MAX, `is larger than ${METADATA_MAX} characters`);

const written = z.object({
  name: nameText(200).optional().describe("Name that people read."),
  fileType: inOrder(FILE_TYPES).optional().describe("Format of the file; CustomFormat by default."),
  ingestionType: inOrder(INGESTION_TYPES).optional().describe("How the file comes; SendViaFtp by default."),
  triggerType: inOrder(TRIGGER_TYPES).optional().describe("Added, its only value, by default."),
  fileNamePatternMatches: z
    .array(caseless(z.object({ filterType: inOrder(FILTER_TYPES), value: z.string().min(1).max(PATTERN_VALUE_MAX) })))
    .max(PATTERNS_MAX)
    .optional()
    .describe(
      "Conditions on the name of the file, case-sensitive; at least one, unless the files come by SendViaHttp.",
    ),
  fileTriggerCombination: inOrder(TRIGGER_COMBINATIONS)
    .optional()
    .describe("And, the default: every condition must hold. Or: any one."),
  state: inOrder(TRIGGER_STATES).optional().describe("Active by default. Updated: Active, and changed since."),
  token: z.guid().toLowerCase().optional().describe("GUID of the custom push route; made when it is left out."),
  mapping: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe("Name of the mapper (GET /fileTrigger/mappings); `standard` by default for OpisenseStandard."),
  metadata: metadata.optional().describe("Settings of the mapper."),
});

/** POST /fileTrigger. */
export const fileTriggerBody = caseless(written);
export type FileTriggerBody = z.output<typeof fileTriggerBody>;

/** PUT /fileTrigger: fields that it leaves out stay as they are. */
export const fileTriggerUpdate = caseless(written.extend({ id: z.int() }));

/** The fields of a trigger that a person sets. */
export const fileTriggerFields = z.object({
  name: z.string().nullable(),
  fileType: z.enum(FILE_TYPES),
  ingestionType: z.enum(INGESTION_TYPES),
  triggerType: z.enum(TRIGGER_TYPES),
  fileNamePatternMatches: z.array(fileNamePattern),
  fileTriggerCombination: z.enum(TRIGGER_COMBINATIONS),
  state: z.enum(TRIGGER_STATES),
  token: z.guid(),
  mapping: z.string().nullable(),
  metadata: z.record(z.string(), z.unknown()),
});
export type FileTriggerFields = Readonly<z.infer<typeof fileTriggerFields>>;

export const storedFileTrigger = fileTriggerFields.extend({
  id: z.int(),
  creationDate: z.string(),
  createdBy: z.string(),
  lastEditDate: z.string(),
  editedBy: z.string(),
});
export type StoredFileTrigger = Readonly<z.infer<typeof storedFileTrigger>>;

export const shownFileTrigger = storedFileTrigger.extend({
  mappingKnown: z
    .boolean()
    .describe("False: the service has no such mapper, and files of the trigger fail to convert."),
});
export type ShownFileTrigger = Readonly<z.infer<typeof shownFileTrigger>>;

export const fileTriggerChange = z.object({
  id: z.int(),
  date: z.string(),
  by: z.string(),
  state: z.enum(TRIGGER_STATES).describe("Updated: a change of other fields than the state."),
  before: fileTriggerFields.nullable().describe("Null when the trigger was created."),
  after: fileTriggerFields,
});
export type FileTriggerChange = Readonly<z.infer<typeof fileTriggerChange>>;

const filters = {
  State: listOf(inOrder(TRIGGER_STATES)).optional().describe("Active and Inactive by default."),
  IngestionType: listOf(inOrder(INGESTION_TYPES)).optional(),
};
const pages = {
  ItemsPerPage: queryInteger.optional(),
  Page: queryInteger.optional().describe("Counts from 0."),
  ...paging,
};
export const fileTriggersQuery = caseless(z.object({ ...filters, ...pages }));
export const fileTriggerCountQuery = caseless(z.object(filters));
export const fileTriggerHistoryQuery = caseless(z.object(pages));
export const fileTriggerIdsQuery = caseless(
  z.object({
    ids: listOf(queryInteger)
      .pipe(z.array(z.int()).min(1).max(IDS_MAX))
      .describe("Ids of file triggers; the key is repeated."),
  }),
);
export const fileTriggerTestQuery = caseless(
  z.object({
    Filename: z.string().min(1),
    IngestionType: inOrder(INGESTION_TYPES).default("UploadInStorage").describe("How the file would come."),
    Token: z.guid().optional().describe("With SendViaHttp the token of the request decides, and not the name."),
    Entry: listOf(z.string().min(1))
      .pipe(z.array(z.string()).max(IDS_MAX))
      .optional()
      .describe("Name of a file in a ZIP of this name, each judged for itself; the key is repeated."),
  }),
);

const verdict = z.object({
  id: z.int(),
  name: z.string().nullable(),
  matches: z.boolean(),
  reason: z.string(),
  patterns: z.array(fileNamePattern.extend({ holds: z.boolean() })),
});
const judgement = z.object({
  fileName: z.string(),
  claimedBy: z.int().nullable().describe("The first that matches in the order of ids; null: the file is unclaimed."),
  triggers: z.array(verdict).describe("None for a container: they are asked for its entries."),
});
export type FileTriggerJudgement = z.infer<typeof judgement>;
export const fileTriggerTest = judgement.extend({
  ingestionType: z.enum(INGESTION_TYPES),
  container: z
    .object({
      reason: z.string().describe("Why no trigger is asked for the file itself."),
      entries: z
        .array(judgement.extend({ refused: z.string().nullable().describe("Why the entry is offered to no trigger.") }))
        .describe("Those of `Entry`; the only one of a .gz is known by its name."),
    })
    .nullable()
    .describe("For a name that ends with .zip or .gz, unless the token decides; null otherwise."),
});
export type FileTriggerTest = z.infer<typeof fileTriggerTest>;

export const mapping = z.object({
  name: z.string(),
  version: z.string(),
  summary: z.string(),
  settingsSchema: z.looseObject({}).nullable().describe("JSON Schema of `metadata`; null: any settings."),
});
/** A mapper that the service has for an account. */
export type Mapping = Readonly<z.infer<typeof mapping>>;

/** POST {push_url}/api/generic/{guid}. */
export const genericPushQuery = caseless(
  z.object({
    Filename: z
      .string()
      .optional()
      .describe("Name of the file; otherwise that of Content-Disposition, or one made from the trigger and the time."),
    webhookUrl: z
      .string()
      .optional()
      .describe("Receives the outcome of each push of the file's readings, as of a push."),
  }),
);
export const genericPushed = z.object({
  id: z.int().describe("Of the stored file: GET /storage/{id} says what became of it."),
  fileName: z.string(),
  triggerId: z.int(),
  status: z.literal("accepted"),
});
