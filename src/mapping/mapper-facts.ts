/** What a mapper says of itself, as plain data that can cross between processes. */
import { z } from "zod";
import type { Mapper } from "./mapper.ts";
import type { MapperFacts } from "./messages.ts";

/** Of a mapper that names none. */
export const VERSION_DEFAULT = "0.0.0";

export function factsOf(mapper: Mapper): MapperFacts {
  const schema = z.toJSONSchema(mapper.settings ?? z.strictObject({}), {
    io: "input",
    unrepresentable: "any",
  });
  return {
    name: mapper.name,
    version: String(mapper.version ?? VERSION_DEFAULT),
    summary: String(mapper.summary),
    // As text and back: what a mapper made may hold more than plain data.
    settingsSchema: JSON.parse(JSON.stringify(schema)) as unknown,
  };
}
