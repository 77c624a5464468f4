/** Files that the gateway has seen: the search, the life of one, and its input, readings and payload. */
import { z } from "zod";
import { ALL_ARRIVAL_STATES, ALL_RUN_STATES, FILE_STANDINGS } from "../../states.ts";
import { action, rejectedReasons, targetFindings } from "./attention.ts";
import { count, Download, endpoint, moment } from "./endpoint.ts";
import { batch, instant, points, reason, rejectedRow, run } from "./state.ts";

const fileRow = z.object({
  id: z.number(),
  drop: z.string(),
  path: z.string(),
  name: z.string(),
  size: z.number().describe("Bytes."),
  seenAt: instant,
  changedAt: instant.describe("When the file or its run last changed its state."),
  state: z.enum(FILE_STANDINGS).nullable().describe("Null for a container, whose entries are files of their own."),
  run: z.string().nullable().describe("The latest run."),
  runState: z.enum(ALL_RUN_STATES).nullable(),
  trigger: z.string().nullable(),
  points: points.nullable(),
  reason: z.string().nullable(),
});
export type FileRow = z.output<typeof fileRow>;

const fileRun = z.object({
  run: run.extend({
    reason: reason
      .extend({
        rejectedByReason: rejectedReasons.optional(),
        targets: targetFindings.optional(),
        discards: z.number().optional(),
      })
      .nullable(),
    finishedAt: instant.nullable(),
    replay: z
      .object({
        of: z.string(),
        rejectedOnly: z.boolean(),
        overwrite: z.boolean(),
        by: z.string(),
        why: z.string().nullable(),
        continues: z.boolean().describe("No person ordered it: a held run continues with what is in force."),
      })
      .nullable(),
  }),
  batches: z.array(batch),
  story: z
    .object({
      shown: z
        .array(z.string())
        .describe("Sequences: of many batches the first, the last, those that failed or differ."),
      batches: z.number().describe("Batches that are not among them."),
      points: z.number(),
      odd: z.number().describe("How many of these failed or differ."),
    })
    .describe("The batches that a person needs to see."),
  rejected: z.array(rejectedRow).describe("The first of the refused rows, 200 at most."),
  rejectedCount: z.number().describe("Of all its refused rows."),
});

const fileEvent = z.object({
  at: instant,
  what: z.string().describe("Such as `run.claimed`, `batch.accepted`, `source.archived`."),
  detail: z.string(),
  operationId: z.string().nullable(),
  runId: z.string().nullable(),
  sinceMs: z.number().nullable().describe("Milliseconds after the event before; null for the first."),
  folded: z
    .object({ count: z.number(), lastAt: instant, lastOperationId: z.string() })
    .nullable()
    .describe("The event is the first of so many of the same kind about batches of the run that went alike."),
});

const filePage = z.object({
  arrival: fileRow.extend({
    arrivalState: z.enum(ALL_ARRIVAL_STATES),
    arrivalReason: z.string(),
    mtime: z.string(),
    sha256: z.string().nullable(),
    goneAt: instant.nullable(),
    container: z.number().nullable().describe("The file whose entry it is."),
  }),
  runs: z.array(fileRun).describe("The last 200, in the order in which they were opened."),
  events: z.array(fileEvent),
  versions: z.array(fileRow).describe("Other files that are or were at the path, newest first, 200 at most."),
  entries: z.array(fileRow).describe("Of a container, 200 at most."),
  counts: z.object({ runs: z.number(), versions: z.number(), entries: z.number() }).describe("Of all of them."),
  currentPlace: z.string().describe("Where the file is now, in words."),
  forms: z.string().nullable().describe("Both forms of a name that is not in Unicode NFC, by which it is matched."),
  input: z.object({
    kept: z.boolean(),
    where: z.enum(["spool", "drop"]).nullable().describe("Null: its content is no longer available."),
    format: z.enum(["text", "workbook", "binary"]).nullable().describe("Null when its content is not kept."),
  }),
  actions: z.array(action),
});
export type FilePage = z.output<typeof filePage>;

const mark = z.object({ row: z.number(), column: z.string().nullable(), reason: z.string() });
const inputPart = {
  isLast: z.boolean().describe("No rows follow these."),
  marks: z.array(mark).describe("Refused rows and the place of the reason, among these rows."),
};
export const inputPage = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("text"),
    encoding: z.string(),
    lines: z.array(
      z.object({ row: z.number(), text: z.string(), cut: z.number().describe("Characters that are left out.") }),
    ),
    ...inputPart,
  }),
  z.object({
    kind: z.literal("table"),
    sheets: z.array(z.string()),
    sheet: z.string(),
    rows: z.array(z.object({ row: z.number(), cells: z.array(z.string()) })),
    ...inputPart,
  }),
  z.object({ kind: z.literal("binary"), reason: z.string(), ...inputPart }),
]);
export const inputQuery = z.strictObject({
  sheet: z.string().optional(),
  encoding: z.string().optional(),
  from: z.coerce.number().int().min(1).default(1).describe("The first row."),
  rows: count(1_000, 100),
});
export type InputPage = z.output<typeof inputPage>;

const id = z.strictObject({ id: z.coerce.number().int().positive() });
const ofRun = z.string().optional().describe("A run of the file; the latest that has readings by default.");

/** A reading of a file, with the place that it came from. */
export const listedReading = z.object({
  target: z.string(),
  date: z.string(),
  value: z.number(),
  version: z.string().nullable(),
  sheet: z.string().nullable(),
  row: z.number().nullable(),
});

const readings = z.object({
  run: z.string(),
  targets: z.array(
    z.object({
      target: z.string().describe("In words, such as `sourceSerialNumber=M-1 mappingConfig=kWh`."),
      points: z.number(),
      from: instant.nullable(),
      to: instant.nullable(),
      unit: z.string().nullable().describe("As the mapper declared it."),
    }),
  ),
  readings: z.array(listedReading),
  isCut: z.boolean().describe("There are more readings than these."),
});
export type FileReadings = z.output<typeof readings>;

const common = { method: "GET", need: "read", tag: "Files" } as const;

export const fileEndpoints = {
  files: endpoint({
    ...common,
    path: "/operations/files",
    summary: "Files, newest first",
    description:
      "`q` is a part of the name or the path, a run, an operationId, or a target in words. Where no path has it, it " +
      "is the number or the name of a meter, with the registers of the newest runs. Whatever identifies one file is " +
      "found alone. A search through very many files stops after a moment, with fewer files than asked for or none, " +
      "and `next` continues it; what an index finds, files whose names begin with `q`, is in the first part.",
    query: z.strictObject({
      q: z.string().max(500).optional(),
      state: z.enum(FILE_STANDINGS).optional(),
      drop: z.string().optional(),
      trigger: z.string().optional(),
      from: moment().optional().describe("First seen at this instant or later."),
      to: moment().optional().describe("First seen before this instant."),
      after: z.string().optional().describe("`next` of the part before."),
      limit: count(500, 50),
    }),
    answer: z.object({
      files: z.array(fileRow),
      next: z.string().nullable(),
      searchedTo: instant
        .nullable()
        .describe("A search stops after a moment: the files seen since then were searched. Null: all were."),
    }),
  }),
  file: endpoint({
    ...common,
    path: "/operations/files/:id",
    summary: "The life of a file: runs, batches, events, other versions",
    params: id,
    answer: filePage,
  }),
  fileInput: endpoint({
    ...common,
    path: "/operations/files/:id/input",
    summary: "Rows of the file as it came, with the refused ones marked",
    description: "Lines are cut at 2,000 characters, and cells at 500.",
    params: id,
    query: inputQuery,
    answer: inputPage,
  }),
  fileInputFile: endpoint({
    ...common,
    path: "/operations/files/:id/input/file",
    summary: "The file as it came",
    params: id,
    answer: new Download(),
  }),
  fileReadings: endpoint({
    ...common,
    path: "/operations/files/:id/readings",
    summary: "What the mapper made of the file",
    params: id,
    query: z.strictObject({
      run: ofRun,
      target: z.string().optional().describe("In words; all targets by default."),
      limit: count(100_000, 10_000),
    }),
    answer: readings,
  }),
  filePayload: endpoint({
    ...common,
    path: "/operations/files/:id/payload",
    summary: "A batch as it is sent",
    params: id,
    query: z.strictObject({ run: ofRun, batch: z.string().default("1").describe("Its sequence or its operationId.") }),
    answer: z.object({
      run: z.string(),
      operationId: z.string(),
      sequence: z.string(),
      bytes: z.number(),
      text: z.string().describe("JSON."),
      isCut: z.boolean().describe("Only its beginning is shown."),
    }),
  }),
} as const;
