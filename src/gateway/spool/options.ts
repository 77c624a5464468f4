import { z } from "zod";
import { duration, size } from "#core/quantities.ts";

export const spoolOptions = z.strictObject({
  path: z
    .string()
    .default("./state/spool")
    .describe("Folder for fetched inputs and segments. It must be on a disk that survives a restart."),
  budget: size("10GB").describe(
    "Most bytes of files in progress (fetched inputs, segments, bodies of the HTTP intakes, also those in a ledger " +
      "that nodes share). While a service is away they grow to this; then no more files are taken, and they stay " +
      "safe at their drops. Taken again below 90 % of it.",
  ),
  headroom: size("500MB").describe(
    "Free space that the disk of the spool keeps; with less, no more files are taken either.",
  ),
  keepInputs: z
    .strictObject({
      age: duration("30d").describe("A kept input is removed this long after its run came to rest."),
      size: size("2GB").describe("Beyond this, the oldest kept inputs of runs at rest are removed first."),
    })
    .prefault({})
    .describe(
      "How long the gateway keeps its own copy of each fetched input, for replay: compressed, unless it is small or " +
        "shares a segment with others; large ones within a minute.",
    ),
});
export type SpoolOptions = z.output<typeof spoolOptions>;
