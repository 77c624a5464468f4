/** Section `files` of the configuration: what the hub takes itself, and its gateway processes. */
import { z } from "zod";
import { duration, size } from "#core/quantities.ts";

const common = {
  scan: z
    .strictObject({
      command: z
        .array(z.string().min(1))
        .min(1)
        .describe(
          "A virus scanner with its arguments, run without a shell for each file before triggers may claim it. The " +
            "content comes on standard input, or as the path in the place of `{file}`. Exit code 0: clean; " +
            "1: infected, and the file is quarantined; everything else: tried again.",
        )
        .meta({ examples: [["clamdscan", "--no-summary", "-"]] }),
      timeout: duration("5m").describe(
        "Then the command and what it started are ended, and tried again; 5m by default.",
      ),
      concurrency: z
        .int()
        .positive()
        .default(3)
        .describe(
          "Scans at one time, by turns of the accounts; of 3 or more, one account has at most all but one. " +
            "3 by default.",
        ),
    })
    .optional()
    .describe("Virus scan of stored files; none when absent."),
  mappers: z
    .array(z.string().min(1))
    .default([])
    .describe(
      "Folders with further mappers for the files of every account, as NAME/mapper.ts or NAME.ts; the mappers that " +
        "come with Headgate are there in any case.",
    )
    .meta({ examples: [["mappers"]] }),
  workers: z
    .union([z.literal("auto"), z.int().min(1).max(256)])
    .default("auto")
    .describe(
      "Files that are mapped at the same time, of all accounts together, which take turns; `auto`: one a core. Two " +
        "more are for accounts that have none among them, so that slow files of one do not hold those of the others.",
    ),
  memory: size("512MB").describe("Memory that the mapping of one file may use before it is refused; 512MB by default."),
  timeLimit: duration("10m").describe(
    "Time that one file may take to map before it is refused, such as one whose trigger has a slow pattern; 10m by " +
      "default.",
  ),
  spool: z
    .string()
    .min(1)
    .optional()
    .describe(
      "Folder for files that are being processed, of this hub alone; `<store.path>.spool` by default, with a " +
        "PostgreSQL store `<files.path>.spool-<host>-<port>`, or with `kind: s3` the same of `files.local`.",
    )
    .meta({ examples: ["/var/lib/headgate/hub.spool"] }),
};

const folder = z.strictObject({
  kind: z.literal("folder").default("folder").describe("The bytes of stored files are in a folder."),
  path: z
    .string()
    .min(1)
    .optional()
    .describe(
      "Folder of the stored files, made when absent; `<store.path>.files` by default. With a PostgreSQL store it has " +
        "to be given, and to be the same one for every hub; without it /storage is answered by 501.",
    )
    .meta({ examples: ["data/files"] }),
  ...common,
});

const objectStorage = z.strictObject({
  kind: z
    .literal("s3")
    .describe("The bytes of stored files are in S3-compatible object storage, which any number of hubs share."),
  endpoint: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe("Address of the object storage; that of Amazon's region when absent.")
    .meta({ examples: ["https://objects.example.org"] }),
  region: z.string().min(1).default("us-east-1").describe("Region of the bucket; us-east-1 by default."),
  bucket: z.string().min(1).describe("The bucket, which has to exist."),
  prefix: z
    .string()
    .regex(/^[\w.-][\w./-]*$/, "expected letters, digits, and any of . _ - /")
    .default("")
    .describe("Beginning of all keys of this hub in the bucket, such as `hub/`; none by default.")
    .meta({ examples: ["hub/"] }),
  accessKeyId: z.string().min(1).meta({ secret: true }).describe("Name of the access key."),
  secretAccessKey: z
    .string()
    .min(1)
    .meta({ secret: true, examples: ["${file:/etc/headgate/s3-secret}"] })
    .describe("The access key; it has to permit reading, writing, listing and deleting below `prefix`."),
  forcePathStyle: z
    .boolean()
    .default(false)
    .describe(
      "Whether the bucket is the first part of the path (`https://host/bucket/…`), as most servers beside Amazon's " +
        "want it, and not of the name of the host; false by default.",
    ),
  timeout: duration("1m").describe("How long the object storage may be silent before a call is tried again; 1m."),
  local: z
    .string()
    .min(1)
    .optional()
    .describe(
      "Folder of this hub alone for files while they are received, made when absent; `<store.path>.receiving` by " +
        "default. With a PostgreSQL store it has to be given.",
    )
    .meta({ examples: ["/var/lib/headgate/receiving"] }),
  ...common,
});

/** `files: false` and the like look as though they switched the storage off. */
const SETTINGS =
  "expected settings such as { path: data/files }, since the storage cannot be switched off: without `files` it is " +
  "beside an SQLite store, and answers 501 with a PostgreSQL store";

export const filesOptions = z.discriminatedUnion("kind", [folder, objectStorage], {
  error: ({ input }) => (typeof input !== "object" || input === null || Array.isArray(input) ? SETTINGS : undefined),
});

export type ObjectStorageOptions = z.infer<typeof objectStorage>;
