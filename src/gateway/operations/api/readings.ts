/** From a reading to the row that it came from. */
import { z } from "zod";
import { endpoint } from "./endpoint.ts";

const origin = z.object({
  target: z.string(),
  value: z.number(),
  version: z.string().nullable(),
  file: z.number().describe("The file's id."),
  drop: z.string(),
  path: z.string(),
  sheet: z.string().nullable(),
  row: z.number().nullable(),
  run: z.string(),
  state: z.string(),
  operationId: z.string().nullable(),
  mapper: z.string().describe("Name and version."),
});
export type ReadingOriginRow = z.output<typeof origin>;

export const readingEndpoints = {
  readingOrigin: endpoint({
    method: "GET",
    path: "/operations/readings",
    need: "read",
    tag: "Files",
    summary: "The rows that gave a reading, the newest run first",
    description:
      "It finds what the spool still keeps (`spool.keepInputs`). With an operationId, only readings of that " +
      "operation: those whose target does not differ in any field that both name, since a file may name a meter by " +
      "its EAN where the service has a serial number besides.",
    query: z.strictObject({
      target: z.string().min(1).describe("Such as `sourceSerialNumber=M-1 mappingConfig=kWh`, or JSON."),
      date: z.string().min(1).describe("An instant, such as 2026-03-01T00:00:00Z, or with an offset."),
      operationId: z.string().min(1).max(200).optional().describe("Of the push that stored the reading."),
    }),
    answer: z.object({ found: z.array(origin) }),
  }),
} as const;
