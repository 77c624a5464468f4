/** Settings of the worker pool and of the folders that hold mappers. */
import { z } from "zod";
import { duration, size } from "#core/quantities.ts";

export const workersOptions = z.strictObject({
  count: z
    .union([z.literal("auto"), z.int().min(1).max(256)])
    .default("auto")
    .describe("Files that are mapped at the same time, each in a thread of its own; `auto` takes one a core.")
    .meta({ examples: ["auto", 4] }),
  queue: z
    .int()
    .min(0)
    .max(1_000)
    .default(1)
    .describe(
      "Files that are fetched ahead and wait for a free worker. Drops take turns, file by file, " +
        "whatever the backlog of one of them, here and at the workers.",
    )
    .meta({ examples: [1, 8] }),
  perDrop: z
    .union([z.literal("all"), z.int().min(1).max(256)])
    .default("all")
    .describe(
      "Workers that the files of one drop may take at the same time. `all` lets one drop use every " +
        "worker while the others have no files; a number reserves the remaining workers for them, also " +
        "while slow files are mapped.",
    )
    .meta({ examples: ["all", 2] }),
  memory: size("512MB")
    .describe(
      "Memory that one mapper may use, buffers included, before its file is quarantined. The threads of " +
        "one process share their limits for buffers; files of a process beyond it are mapped again, each " +
        "alone. Default 512MB.",
    )
    .meta({ examples: ["512MB", "1GB"] }),
  timeLimit: duration("10m")
    .describe("Time that one file may take to map before it is quarantined. Default 10m.")
    .meta({ examples: ["10m", "1h"] }),
});
export type WorkersOptions = z.output<typeof workersOptions>;

const lookupOptions = z.strictObject({
  name: z
    .string()
    .min(1)
    .describe("Name by which mappers ask for the table; unique.")
    .meta({ examples: ["meters"] }),
  path: z
    .string()
    .min(1)
    .describe(
      "The table, as CSV or (when the name ends with .xlsx) as a workbook. A run maps with the " +
        "content that the table had when its file was claimed; an edited table applies to the files " +
        "after that.",
    )
    .meta({ examples: ["./lookups/meters.csv"] }),
  key: z
    .string()
    .min(1)
    .describe("Name of the column that rows are looked up by. Its values must be unique.")
    .meta({ examples: ["tag"] }),
  delimiter: z.string().min(1).optional().describe("Between the cells of a CSV table. Default `,`."),
  encoding: z.string().min(1).optional().describe("Of a CSV table without a byte order mark. Default `utf-8`."),
  sheet: z
    .union([z.string().min(1), z.int().min(1)])
    .optional()
    .describe("Name or number of the sheet of a workbook. Default: the first."),
});

export const lookupsOptions = z
  .array(lookupOptions)
  .default([])
  .describe("Tables in which mappers look up keys, such as a vendor's tags with their targets, units and factors.");

export const mappersOptions = z.strictObject({
  folders: z
    .array(z.string().min(1))
    .default(["./mappers"])
    .describe(
      "Folders that hold mappers, as NAME/mapper.ts or NAME.ts (or .js). The first folder that has a " +
        "name wins; the mappers that come with Headgate come last.",
    )
    .meta({ examples: [["./mappers"]] }),
});
export type MappersOptions = z.output<typeof mappersOptions>;
