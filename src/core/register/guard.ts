/** The codes of the guard before the first push, and of provisioning; a section of the register (`../register.ts`). */
import type { RegisterEntry } from "./entry.ts";

export const GUARD_ERRORS = {
  "HG-GUARD-001": {
    title: "targets do not exist in the account, or several variables are meant",
    hint:
      "Create the variables (by hand, or by a `provision` template of the trigger and `headgate provision " +
      "RUN`), or correct the mapper and `headgate replay RUN`. The run resumes automatically once every target " +
      "is one variable; `headgate recheck RUN` checks it now, `headgate release RUN` pushes it as it is.",
  },
  "HG-GUARD-002": {
    title: "the declared unit is not the unit of the variable",
    hint:
      "Values are stored unconverted. Convert them (setting `convertTo` of a bundled mapper, `unit(value, from, " +
      "to)` in one of your own) and `headgate replay RUN`, or correct the variable's unit: the run then resumes " +
      "automatically. `headgate release RUN` pushes the numbers as they are.",
  },
  "HG-GUARD-003": {
    title: "dates lie outside the ingestion limits",
    hint:
      "Is a year or a time zone misread? Correct the mapper and `headgate replay RUN`, or set `ingestion` of " +
      "the service to the limits of the account.",
  },
  "HG-GUARD-004": {
    title: "readings without a version go to versioned variables",
    hint:
      "Should a batch be sent twice, the service makes a second version. Set `version: run` of the trigger, or " +
      "`idempotency: true` of the service if it honours Idempotency-Key.",
  },
  "HG-GUARD-005": {
    title: "targets cannot be checked: the user may not read",
    hint: "Add the scope datahub-api and the right to read, or set `guard.unreadable` of the trigger.",
  },
  "HG-GUARD-006": {
    title: "the read interface cannot be reached",
    hint:
      "The run waits and resumes automatically. Check the address in `base` of the service; `guard: push` of " +
      "the trigger pushes unchecked.",
  },
  "HG-GUARD-007": {
    title: "later files delivered the same dates while the run was held",
    hint:
      "`headgate replay RUN` sends it without these dates, `headgate release RUN --overwrite` with all of them, " +
      "`headgate cancel RUN` gives it up.",
  },
  "HG-GUARD-008": {
    title: "the missing structure cannot be created",
    hint:
      "Correct the `provision` template of the trigger, or have a manager of the account create what is " +
      "missing; the run then resumes automatically.",
  },
  "HG-GUARD-009": {
    title: "readings of a released run would be discarded",
    hint:
      "Create their targets (`headgate provision RUN` where the trigger has a `provision` template), or correct " +
      "the mapper and `headgate replay RUN`. `headgate release RUN --yes` pushes it all the same.",
  },
  "HG-GUARD-010": {
    title: "the mapper, its settings or a table were changed while the run was held",
    hint:
      "`headgate replay RUN` maps it again with what is in force, `headgate release RUN` pushes it as it was mapped, " +
      "`headgate cancel RUN` gives it up. With `held.remap: always` it is mapped again without a question.",
  },
} as const satisfies Record<string, RegisterEntry>;
