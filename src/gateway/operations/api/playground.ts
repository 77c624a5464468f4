/** Endpoints of the playground: what a mapper makes of a file, tried without a run. */
import { z } from "zod";
import { endpoint, Upload } from "./endpoint.ts";
import { inputPage, inputQuery, listedReading } from "./files.ts";

/** Bytes of a sample. */
const SAMPLE_BYTES_MAX = 20_000_000;
/** Readings, refused rows and targets of an answer. */
export const READINGS_MAX = 5_000;
export const REFUSED_MAX = 200;
export const TARGETS_MAX = 1_000;
/** Characters of the payload in an answer. */
export const PAYLOAD_MAX = 256 * 1024;

const tag = "Playground";

const identity = z.object({ name: z.string(), version: z.string(), digest: z.string() });
/** Characters; file systems permit 255 with the ending. */
const NAME_MAX = 100;
const mapperName = z.string().min(1).max(NAME_MAX);
const hyphenated = z
  .string()
  .max(NAME_MAX)
  .regex(/^[a-z0-9]+(?:-[a-z0-9]+)*$/, "expected lower-case words joined by hyphens");
const settings = z.record(z.string(), z.unknown());

export const mapperFacts = identity.extend({
  summary: z.string(),
  /** JSON Schema. */
  settings: z.unknown(),
  /** It comes with Headgate; its cases cannot be added to. */
  isBundled: z.boolean(),
  /** Names of its cases. */
  cases: z.array(z.string()),
});
export type MapperFacts = z.output<typeof mapperFacts>;

const place = z.object({
  sheet: z.string().optional(),
  row: z.number().optional(),
  column: z.string().optional(),
  text: z.string().optional(),
});

/** Something that a person should know: why nothing was mapped, or what became of readings that do not count. */
const problem = z.object({
  code: z.string().nullable(),
  message: z.string(),
  hint: z.string().nullable(),
  place: place.nullable(),
});

export const mapped = z.object({
  /** `failed`: the file would go into quarantine. */
  status: z.enum(["mapped", "failed"]),
  mapper: identity,
  durationMs: z.number(),
  points: z.number(),
  /** Readings that do not count, since the file repeats their target, date and version. */
  superseded: z.number(),
  period: z.object({ from: z.string(), to: z.string() }).nullable(),
  targetCount: z.number(),
  targets: z.array(
    z.object({
      target: z.string(),
      points: z.number(),
      unit: z.string().nullable(),
      from: z.string().nullable(),
      to: z.string().nullable(),
    }),
  ),
  readings: z.array(listedReading),
  /** There are more readings than `readings` has. */
  isCut: z.boolean(),
  refused: z.array(z.object({ message: z.string(), place })),
  refusedCount: z.number(),
  refusedByReason: z.array(z.object({ message: z.string(), column: z.string().optional(), count: z.number() })),
  /** Text of the first batch, as it would be pushed. */
  payload: z.string().nullable(),
  isPayloadCut: z.boolean(),
  /** Lines that the mapper logged or printed. */
  log: z.array(z.string()),
  problems: z.array(problem),
  /** The trigger that would map files in this way, as YAML for the configuration. */
  trigger: z.string(),
});
export type Mapped = z.output<typeof mapped>;

/** A sample that was sent before, or the arrival of a file; exactly one. */
const source = { sample: z.string().max(NAME_MAX).optional(), file: z.number().int().optional() };

export const mapRequest = z
  .strictObject({
    ...source,
    mapper: mapperName,
    settings: settings.default({}),
    /** The name that the mapper gets. Default: that of the sample or of the file. */
    fileName: z.string().min(1).max(1_000).optional(),
    rows: z.enum(["strict", "lenient"]).default("strict"),
    /** With lenient rows: share of refused rows, from 0 to 1, above which nothing is mapped. */
    rejectShare: z.number().min(0).max(1).default(0.1),
  })
  .refine(hasOneSource, "expected either sample or file");
export type MapRequest = z.output<typeof mapRequest>;

export const caseRequest = z
  .strictObject({
    ...source,
    mapper: mapperName,
    /** Of the folder of the case. */
    name: hyphenated,
    settings: settings.default({}),
    fileName: z.string().min(1).max(255).optional(),
    rows: z.enum(["strict", "lenient"]).default("strict"),
  })
  .refine(hasOneSource, "expected either sample or file");
export type CaseRequest = z.output<typeof caseRequest>;

const proposal = z.object({
  /** The dates carry no zone: name one in `timeZone`. Nothing else is proposed then. */
  needsZone: z.boolean(),
  columns: z.array(z.string()),
  /** The first rows, as text. */
  rows: z.array(z.array(z.string())),
  /** A bundled mapper that reads the file by settings alone; null when none does. */
  declarative: z.object({ mapper: z.string(), settings }).nullable(),
  /** Text of a new `mapper.ts`, with the settings that it needs. */
  source: z.string().nullable(),
  settings,
  /** Assumptions that the sample does not confirm. */
  assumed: z.array(z.string()),
});
export type ProposalAnswer = z.output<typeof proposal>;

function hasOneSource(given: { readonly sample?: string | undefined; readonly file?: number | undefined }): boolean {
  return (given.sample === undefined) !== (given.file === undefined);
}

export const playgroundEndpoints = {
  mappers: endpoint({
    method: "GET",
    path: "/operations/mappers",
    need: "read",
    tag,
    summary: "The mappers that triggers can name, with the JSON Schema of their settings.",
    answer: z.array(mapperFacts),
  }),
  mapperRuns: endpoint({
    method: "GET",
    path: "/operations/mappers/runs",
    need: "read",
    tag,
    summary: "How many runs each version of each mapper made, and how many of them are in quarantine; newest first.",
    answer: z.array(
      identity.extend({
        runs: z.number(),
        quarantined: z.number(),
        first: z.string().describe("When its first run began."),
        last: z.string().describe("When its last run began."),
      }),
    ),
  }),
  addSample: endpoint({
    method: "POST",
    path: "/operations/playground/samples",
    need: "command",
    tag,
    summary: "Takes a file to try mappers with. It is removed after an hour.",
    query: z.strictObject({ name: z.string().min(1).max(255) }),
    body: new Upload(SAMPLE_BYTES_MAX),
    answer: z.object({ sample: z.string(), name: z.string(), bytes: z.number() }),
  }),
  sampleInput: endpoint({
    method: "GET",
    path: "/operations/playground/samples/:sample/input",
    need: "read",
    tag,
    summary: "Rows of a sample as it came",
    description: "Lines are cut at 2,000 characters, and cells at 500.",
    params: z.strictObject({ sample: z.string() }),
    query: inputQuery,
    answer: inputPage,
  }),
  map: endpoint({
    method: "POST",
    path: "/operations/playground/map",
    need: "command",
    tag,
    summary: "Maps a sample, or the input of a file, as a run would, and pushes nothing.",
    description: "One at a time for each person: a newer request ends the one before, which is answered with 409.",
    body: mapRequest,
    answer: mapped,
  }),
  propose: endpoint({
    method: "POST",
    path: "/operations/playground/propose",
    need: "command",
    tag,
    summary: "Settings of a bundled mapper, and the text of a new one, for the table that a sample holds.",
    body: z
      .strictObject({
        ...source,
        name: hyphenated.default("new-mapper"),
        timeZone: z.string().max(NAME_MAX).optional(),
      })
      .refine(hasOneSource, "expected either sample or file"),
    answer: proposal,
  }),
  addCase: endpoint({
    method: "POST",
    path: "/operations/playground/case",
    need: "command",
    tag,
    summary: "Adds a sample to the cases of a mapper of one's own, with what the mapper makes of it now.",
    body: caseRequest,
    answer: z.object({ case: z.string(), file: z.string() }),
  }),
};
