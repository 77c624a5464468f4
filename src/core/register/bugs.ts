/** The codes of bugs; a section of the register (`../register.ts`). */
import type { RegisterEntry } from "./entry.ts";

export const BUG_ERRORS = {
  "HG-BUG-001": {
    title: "an invariant does not hold",
    hint:
      "This is a defect of Headgate. Please report it with the log around it; the gateway stopped before doing " +
      "harm.",
  },
} as const satisfies Record<string, RegisterEntry>;
