/** The words of triggers. */
import { many } from "./numbers.ts";

export const TRIGGERS = {
  lead: "The first trigger that matches a file's name claims it.",
  none: "There are no triggers.",
  claims: "Which trigger claims it?",
  claimName: "Name or path of a file",
  unclaimed: "No trigger claims it",
  others: (names: string) => `Later triggers match as well: ${names}`,
  verdicts: (count: number) => many(count, "verdict", "verdicts"),
  matches: "matches:",
  columns: {
    ...{ trigger: "Trigger", state: "State", names: "Claims", mapper: "Mapper and service", lastFile: "Last file" },
    actions: "Actions",
  },
  and: "and",
  or: "or",
  anyName: "any name",
  allDrops: "of all drops",
  ofDrops: (names: string) => `of ${names}`,
  expected: (every: string, by: string, zone: string) => `expected every ${every} by ${by} (${zone})`,
  filters: {
    StartsWith: "begins with",
    EndsWith: "ends with",
    Contains: "has",
    Equals: "is",
    NotStartsWith: "does not begin with",
    NotEndsWith: "does not end with",
    NotContains: "has not",
    NotEquals: "is not",
  } as Readonly<Record<string, string>>,
};
