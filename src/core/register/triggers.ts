/** The codes of triggers; a section of the register (`../register.ts`). */
import type { RegisterEntry } from "./entry.ts";

export const TRIGGER_ERRORS = {
  "HG-TRIG-001": {
    title: "no trigger claims this file name",
    hint:
      "`headgate trigger test NAME` explains it for each trigger; files are matched again when the triggers " +
      "change. Where such files may lie at the drop, name them in its `expectUnmatched`; otherwise move the file away.",
  },
  "HG-TRIG-002": {
    title: "the service did not list all of its triggers",
    hint: "The triggers that were read last stay in force; the gateway reads them again by itself.",
  },
  "HG-TRIG-003": {
    title: "a trigger of the service has no mapper here",
    hint:
      "At a gateway bind the name of its mapping to a mapper in `mappings` of the entry `from: service`, or add a " +
      "mapper of that name; then `headgate replay` the file. At a hub name another mapping in the file trigger (PUT " +
      "/fileTrigger), or add the mapper (`files.mappers`); then offer the file again (POST /storage/{id}/process).",
  },
} as const satisfies Record<string, RegisterEntry>;
