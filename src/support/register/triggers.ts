/** The codes of triggers; a section of the register (`../register.ts`). */
import type { RegisterEntry } from "./entry.ts";

export const TRIGGER_ERRORS = {
  "HG-TRIG-001": {
    title: "no trigger claims this file name",
    hint: "`headgate trigger test NAME` says for each trigger why not; files are matched again when the triggers change.",
  },
} as const satisfies Record<string, RegisterEntry>;
