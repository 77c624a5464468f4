import { z } from "zod";

export const logOptions = z.strictObject({
  level: z
    .enum(["trace", "debug", "info", "warn", "error", "silent"])
    .default("info")
    .describe("Least severity that is written, as JSON lines on standard error."),
});
