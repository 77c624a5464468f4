/** The codes of triggers; a section of the register (`../register.ts`). */
import type { RegisterEntry } from "./entry.ts";

export const TRIGGER_ERRORS = {
  "HG-TRIG-001": {
    title: "no trigger claims this file name",
    hint:
      "`headgate trigger test NAME` explains it for each trigger; files are matched again when the triggers " +
      "change.",
  },
} as const satisfies Record<string, RegisterEntry>;
