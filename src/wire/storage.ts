/** Stored files as the read and management interface shows them (specification, *Storage endpoints*). */
import { z } from "zod";
import { caseless, inOrder, listOf, paging, queryInteger } from "./caseless.ts";

/** Values of CloudItemTypeId. */
export const FILE_KINDS = ["Image", "Word", "Excel", "Pdf", "Text", "Archive", "Data"] as const;
export type FileKind = (typeof FILE_KINDS)[number];

/** Ways by which files come to the service; `hub` made its own. */
export const FILE_WAYS = ["storage", "generic", "sftp", "ftp", "ftps", "hub"] as const;

/** States of a file; `hub/files/states.ts` says what each of them means. */
export const FILE_STATE_NAMES = [
  "received",
  "unclaimed",
  "processing",
  "stored",
  "partly-discarded",
  "discarded",
  "quarantined",
] as const;
export type FileState = (typeof FILE_STATE_NAMES)[number];

/** `none`: the hub scanned no files when this one came. */
export const FILE_SCANS = ["none", "waiting", "clean", "infected"] as const;

const tag = z.string().min(1).max(200);

/** Query of POST /storage. */
export const fileUploadQuery = caseless(
  z.object({
    Filename: z.string().describe("Name of the file, which triggers match; folders before it are separated by `/`."),
    Tag: listOf(tag).optional().describe("A free label, such as Template, Invoice, Dataset or MasterDataTemplate."),
    Tags: listOf(tag).optional(),
    SiteId: queryInteger.optional().describe("The site that the file belongs to."),
  }),
);

export const filesQuery = caseless(
  z.object({
    FileName: listOf(z.string()).optional().describe("The whole name, or the name without its folders, in any case."),
    SearchText: z.string().optional().describe("A part of the name, or of a tag, in any case."),
    SiteId: listOf(queryInteger).optional(),
    SiteIds: listOf(queryInteger).optional(),
    SiteTypeId: listOf(queryInteger).optional().describe("Types of the files' sites."),
    GroupId: listOf(queryInteger).optional().describe("Groups of the files' sites (GET /groups)."),
    Tags: listOf(z.string()).optional(),
    Tag: listOf(z.string()).optional(),
    CloudItemTypeId: listOf(inOrder(FILE_KINDS)).optional(),
    State: listOf(inOrder(FILE_STATE_NAMES)).optional().describe("What became of the files."),
    ...paging,
  }),
);
export type FilesQuery = z.infer<typeof filesQuery>;

/** Query of GET /storage/file and DELETE /storage. */
export const fileIdsQuery = caseless(
  z
    .object({ ids: listOf(queryInteger).describe("Ids of files; the key is repeated."), id: listOf(queryInteger) })
    .partial(),
);

export const storedFile = z.object({
  id: z.number().int(),
  fileName: z.string(),
  /** Bytes. */
  size: z.number().int(),
  /** Lower-case hexadecimal. */
  sha256: z.string(),
  cloudItemTypeId: z.enum(FILE_KINDS),
  contentType: z.string(),
  tags: z.array(z.string()),
  siteId: z.number().int().nullable(),
  creationDate: z.string(),
  createdBy: z.string(),
  via: z.enum(FILE_WAYS),
  state: z.enum(FILE_STATE_NAMES),
  /** Why it is in this state, in words. */
  reason: z.string().nullable(),
  stateDate: z.string(),
  /** When its sender last sent it again for want of an answer, and got this file; null: never. */
  repeatedDate: z.string().nullable(),
  /** The trigger that claimed it. */
  triggerId: z.number().int().nullable(),
  /** The run that took it through the trigger. */
  run: z.string().nullable(),
  scan: z.enum(FILE_SCANS),
});
export type StoredFile = z.infer<typeof storedFile>;
