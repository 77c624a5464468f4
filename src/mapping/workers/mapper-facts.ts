/** The facts of a mapper, as plain data that can be sent between processes. */
import { z } from "zod";
import { CONFLICT_RULE_DEFAULT, CONFLICTS_SETTING, conflictRule } from "../conflicts.ts";
import type { Mapper } from "../mapper.ts";
import { DATES_SETTING, dateRules } from "../plausible.ts";
import type { MapperFacts } from "./messages.ts";

/** Version of a mapper that names none. */
export const VERSION_DEFAULT = "0.0.0";

export function factsOf(mapper: Mapper): MapperFacts {
  const own = z.toJSONSchema(mapper.settings ?? z.strictObject({}), { io: "input", unrepresentable: "any" });
  const conflicts = z.toJSONSchema(conflictRule.default(mapper.conflicts ?? CONFLICT_RULE_DEFAULT), {
    io: "input",
  });
  delete conflicts.$schema;
  const dates = z.toJSONSchema(dateRules, { io: "input" });
  delete dates.$schema;
  const common = { [CONFLICTS_SETTING]: conflicts, [DATES_SETTING]: dates };
  const schema = own.properties === undefined ? own : { ...own, properties: { ...own.properties, ...common } };
  return {
    name: mapper.name,
    version: String(mapper.version ?? VERSION_DEFAULT),
    summary: String(mapper.summary),
    sourceZone: mapper.sourceZone === true,
    // As text and back, since a mapper may return more than plain data.
    settingsSchema: JSON.parse(JSON.stringify(schema)) as unknown,
  };
}
