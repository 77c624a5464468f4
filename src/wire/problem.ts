/** Body of an error response. The specification shows no shape; the hub uses problem details (RFC 9457). */
import { z } from "zod";

export const problem = z.object({
  type: z.string().optional(),
  /** Stable word for programs, such as `missing-scope`. */
  code: z.string().optional(),
  title: z.string(),
  status: z.number().int(),
  detail: z.string().optional(),
  /** One entry for each fault, with the path of the field. */
  errors: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
});

/** Carried by every call in the header `Api-Version`; without it the service follows its newest version. */
export const API_VERSION = "1.7";

export type Problem = z.infer<typeof problem>;
