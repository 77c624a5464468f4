/** The codes of runs, their spool and containers; a section of the register (`../register.ts`). */
import type { RegisterEntry } from "./entry.ts";

export const RUN_ERRORS = {
  "HG-RUN-001": {
    title: "the same bytes came before at this path",
    hint: "Nothing is pushed twice. To push it again all the same, use `headgate replay RUN`.",
  },
  "HG-RUN-002": {
    title: "the file was removed before it was fetched",
    hint: "Its sender removed or replaced it; newer content at the same path is a new arrival.",
  },
  "HG-RUN-003": {
    title: "the file holds no readings",
    hint: "A header without rows is often an export of an empty period. If that is expected, there is nothing to do.",
  },
  "HG-RUN-018": {
    title: "every row of the file was left out",
    hint:
      "Compare the settings of the mapper that leave out rows with the file, correct them, and `headgate replay " +
      "RUN`. Where such files are usual, set `empty: expected` at the trigger; `headgate cancel RUN` closes this one.",
  },
  "HG-RUN-004": {
    title: "the service refused readings",
    hint:
      "Each refused reading is listed with the message of the service: correct the file or the structure and " +
      "send the file again.",
  },
  "HG-RUN-005": {
    title: "storage of the points was not confirmed",
    hint:
      "Check `operations.webhook.publicUrl`, and that the user has the right to read, so that the outcome can " +
      "be read back.",
  },
  "HG-RUN-006": {
    title: "the service accepted readings and then discarded them",
    hint: "Usually the variable does not exist in this account: create it, then send the file again.",
  },
  "HG-RUN-007": {
    title: "this step of the run failed and is retried",
    hint: "The reason is beside it; nothing is lost meanwhile, the file stays at its drop.",
  },
  "HG-RUN-008": {
    title: "the drop is no longer in the configuration",
    hint: "Put the drop back under the same name, so that its files can be finished.",
  },

  "HG-RUN-009": {
    title: "the input of the run is no longer available",
    hint: "Its kept copy was pruned (`spool.keepInputs`), and the drop has no such version of it. Send the file again.",
  },
  "HG-RUN-010": {
    title: "the run was cancelled by a person",
    hint: "`headgate replay RUN` repeats it.",
  },
  "HG-RUN-011": {
    title: "the run is not in a state for this",
    hint: "`headgate trace RUN` shows its state.",
  },
  "HG-RUN-012": {
    title: "the record of what earlier runs of the file delivered is no longer kept",
    hint: "Without it the remaining readings are unknown: replay the whole run, without `--rejected`.",
  },

  "HG-RUN-013": {
    title: "the dates that later runs have delivered are unknown",
    hint: "Nothing was sent. `--overwrite` sends every reading, also readings that later files have corrected.",
  },
  "HG-RUN-016": {
    title: "a part of the same bytes was accepted before",
    hint: "`headgate replay RUN --rejected` with the run that is named delivers what the service has not accepted.",
  },
  "HG-RUN-017": {
    title: "the drop lists the file but does not deliver it",
    hint:
      "Check the file with another client: its name, its permissions, and whether it exists. Then `headgate " +
      "replay RUN`.",
  },

  "HG-RUN-014": {
    title: "the readings of the file are lost before they were all delivered",
    hint:
      "A newer version of the file is delivered automatically. If it lacks readings of this one, send those " +
      "again; then `headgate cancel RUN` closes this run.",
  },

  "HG-PACK-001": {
    title: "the container cannot be unpacked",
    hint:
      "Is it complete, and an archive as its name says? A workbook is never unpacked when it is named .xlsx. " +
      "Send an undamaged copy.",
  },
  "HG-PACK-002": {
    title: "the container is beyond a limit",
    hint: "If that is intended, raise `archives` of the drop (`entriesMax`, `sizeMax`, `ratioMax`) and send it again.",
  },
  "HG-PACK-003": {
    title: "the container holds a name that is refused",
    hint:
      "Names that lead out of a container, name no file, or come twice are never unpacked. Find out who created " +
      "it.",
  },
  "HG-PACK-004": {
    title: "the entry of a container cannot be unpacked",
    hint: "Send it unencrypted, as a plain file, stored or deflated; the other entries were accepted.",
  },
  "HG-PACK-005": {
    title: "the container is nested too deep",
    hint: "Send it by itself, or raise `archives.depthMax` of the drop.",
  },
  "HG-PACK-006": {
    title: "the container is lost",
    hint:
      "The spool lost its copy, and the drop no longer has it. Send it again; entries that were delivered are " +
      "known as duplicates.",
  },
  "HG-PACK-007": {
    title: "the copy of the container cannot be read or written at present",
    hint: "Check space, rights and health of the disk that holds the spool.",
    again: "It is retried.",
  },
  "HG-PACK-008": {
    title: "not every entry of the container was delivered",
    hint:
      "`headgate trace NAME` of the container shows each entry with its reason. Correct them and send the " +
      "container again under the same name: delivered entries are not delivered twice.",
  },
  "HG-SPOOL-001": {
    title: "the spool cannot be opened",
    hint: "Check `spool.path`, and that this user may write there.",
  },
  "HG-SPOOL-002": {
    title: "the segment cannot be reproduced with the same bytes",
    hint: "Accepted batches stay accepted. Compare the file with the stored points, then send the file again.",
  },
  "HG-SPOOL-003": {
    title: "a lookup table cannot be saved in the spool",
    hint:
      "Check that the disk of the spool has space and that this user may write there; the file is claimed at " +
      "the next poll.",
  },

  "HG-SPOOL-004": {
    title: "the spool cannot be written",
    hint: "Check that its disk has space and that this user may write there; the file is mapped again automatically.",
  },
  "HG-SPOOL-005": {
    title: "the budget of the spool is used up",
    hint:
      "Usually the service was down for long, or held runs wait for a person: `headgate runs --waiting` shows " +
      "which. Files are taken again automatically; raise `spool.budget` if the disk has space.",
  },
  "HG-SPOOL-006": {
    title: "the disk of the spool is nearly full",
    hint: "Free some space, or lower `spool.headroom` or `spool.keepInputs.size`. Files are taken again automatically.",
  },
  "HG-SPOOL-007": {
    title: "an input in the spool differs from the fetched file",
    hint:
      "The disk of the spool has changed or lost bytes: check its health. The damaged copy is replaced from the " +
      "kept copy or from the drop.",
  },
  "HG-SPOOL-008": {
    title: "a segment in the spool differs from what was written",
    hint: "The disk of the spool has changed or lost bytes: check its health. The file is mapped again.",
  },
} as const satisfies Record<string, RegisterEntry>;
