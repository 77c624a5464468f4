/** The codes of mapping; a section of the register (`../register.ts`). */
import type { RegisterEntry } from "./entry.ts";

export const MAPPING_ERRORS = {
  "HG-MAP-001": {
    title: "the mapper does not exist",
    hint: "`headgate mapper list` shows the mappers that were found; correct the trigger's `mapper`.",
  },
  "HG-MAP-002": {
    title: "the mapper changed since this run was made",
    hint:
      "A run maps with exactly the mapper that it was made with. Restore that version, or replay the run with " +
      "the current one.",
  },
  "HG-MAP-003": {
    title: "the mapper cannot be loaded",
    hint: "`headgate mapper list` shows the fault; correct the module and try again.",
  },
  "HG-MAP-004": {
    title: "the settings do not fit the mapper",
    hint: "Correct the trigger's `metadata`; `headgate mapper list` shows what the mapper takes.",
  },
  "HG-MAP-005": {
    title: "the mapper refused a row",
    hint:
      "Correct the row and send the file again; `rows: lenient` on the trigger pushes the good rows and reports " +
      "the others.",
  },
  "HG-MAP-006": {
    title: "the mapper refused every row",
    hint: "Is this the mapper for this kind of file? Check the trigger's `mapper` and `metadata`.",
  },
  "HG-MAP-007": {
    title: "the mapper failed",
    hint: "This is a fault of the mapper, not of the file's format: its author needs this message and the file.",
  },
  "HG-MAP-008": {
    title: "the file cannot be read in this format",
    hint: "Open it in an editor: is it complete, and in the format and encoding that the mapper expects?",
  },
  "HG-MAP-009": {
    title: "mapping took longer than the limit",
    hint: "Raise `workers.timeLimit` if the file is large; otherwise the mapper may be in an endless loop.",
  },
  "HG-MAP-010": {
    title: "mapping took more memory than the limit",
    hint: "Raise `workers.memory` if the file is large; otherwise the mapper keeps too much.",
  },
  "HG-MAP-011": {
    title: "the thread or process of the mapper ended while it mapped the file",
    hint:
      "The mapper ended its own thread or process, or started work that failed later: " +
      "its author needs this message and the file.",
  },
  "HG-MAP-012": {
    title: "a reading is larger than a batch may be",
    hint: "Shorten its tags or version, or raise `push.batch.bytes`.",
  },
  "HG-MAP-013": {
    title: "mapping was cancelled",
    hint: "The gateway is stopping; the file is mapped again when it runs.",
  },
  "HG-MAP-014": {
    title: "the segment cannot be written",
    hint: "Check that the disk of the spool has space and that this user may write there.",
  },
  "HG-MAP-015": {
    title: "the mapper refused the file",
    hint: "The message says what is missing; correct the file or the trigger's `metadata`.",
  },
  "HG-MAP-016": {
    title: "the local copy of the input cannot be read",
    hint: "Check the disk of the spool; the file is fetched and mapped again.",
  },
  "HG-MAP-017": {
    title: "no process for the mapper could be started",
    hint: "Check that the machine has memory and processes left; the file is mapped again.",
  },
  "HG-MAP-018": {
    title: "a golden case of the mapper does not give the expected result",
    hint: "`headgate mapper test NAME` shows the difference; correct the mapper, or its case with `--update`.",
  },
  "HG-MAP-019": {
    title: "dates of the file need the zones of the sources",
    hint: "The file is mapped again by itself, with the zones as they are now.",
  },
  "HG-MAP-020": {
    title: "the zones of the sources cannot be read",
    hint: "The database of the hub has to be reachable; the file is claimed or mapped again by itself.",
  },
  "HG-MAP-030": {
    title: "the lookup table cannot be used",
    hint: "Correct the table or its entry in `lookups`, then replay the run; `headgate check` reads every table.",
  },
  "HG-MAP-031": {
    title: "more rows were refused than the trigger tolerates",
    hint:
      "The refused rows are listed with their reasons. Correct the file and send it again; or raise `rejectShare` of " +
      "the trigger and replay the run, which then delivers the other rows without these.",
  },
  "HG-MAP-040": {
    title: "the mapper left work running when its `map` ended",
    hint:
      "Its author has to await every promise that `map` begins (`await eachRow(…)`, `for await` over rows, no timers " +
      "or callbacks that emit later); then replay the run. `headgate mapper test NAME` shows it too.",
  },
  "HG-MAP-041": {
    title: "the mapper gave readings after its file was written",
    hint:
      "They are lost: its author has to await what `map` begins. Replay the named run with the corrected mapper, " +
      "then `headgate resume TRIGGER`.",
  },
} as const satisfies Record<string, RegisterEntry>;
