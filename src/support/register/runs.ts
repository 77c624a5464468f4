/** The codes of runs, their spool and containers; a section of the register (`../register.ts`). */
import type { RegisterEntry } from "./entry.ts";

export const RUN_ERRORS = {
  "HG-RUN-001": {
    title: "the same bytes came before at this path",
    hint: "Nothing is pushed twice. To push it again all the same, use `headgate replay RUN`.",
  },
  "HG-RUN-002": {
    title: "the file went away before it was fetched",
    hint: "Whoever put it there removed or replaced it; newer content at the same path is an arrival of its own.",
  },
  "HG-RUN-003": {
    title: "the file holds no readings",
    hint: "A header without rows is often an export of an empty period. Nothing is to be done if that is expected.",
  },
  "HG-RUN-004": {
    title: "the service refused readings",
    hint: "The service's words are beside each refused reading: correct the file or the structure and send the file again.",
  },
  "HG-RUN-005": {
    title: "nobody told whether the points were stored",
    hint: "Check `operations.webhook.publicUrl`, and that the user has the right to read, so that the outcome can be read back.",
  },
  "HG-RUN-006": {
    title: "the service accepted readings and then discarded them",
    hint: "Usually the variable does not exist in this account: create it, then send the file again.",
  },
  "HG-RUN-007": {
    title: "this step of the run failed and is tried again",
    hint: "The reason is beside it; nothing is lost meanwhile, the file stays at its drop.",
  },
  "HG-RUN-008": {
    title: "the drop is not in the configuration any more",
    hint: "Put the drop back under the same name, so that its files can be taken to their end.",
  },

  "HG-RUN-009": {
    title: "the input of the run is not to be had any more",
    hint: "Its kept copy was pruned (`spool.keepInputs`), and the drop has no such version of it. Send the file again.",
  },
  "HG-RUN-010": {
    title: "the run was cancelled by a person",
    hint: "`headgate replay RUN` does it again.",
  },
  "HG-RUN-011": {
    title: "the run is not in a state for this",
    hint: "`headgate trace RUN` shows how it stands.",
  },
  "HG-RUN-012": {
    title: "what the earlier runs of the file delivered is not kept any more",
    hint: "Without it nobody can tell what is left to deliver: replay the whole run, without `--rejected`.",
  },

  "HG-RUN-013": {
    title: "nobody can tell which dates later runs have delivered",
    hint: "Nothing was sent. `--overwrite` sends every reading, also those that later files have corrected.",
  },
  "HG-RUN-016": {
    title: "a part of the same bytes was accepted before",
    hint: "`headgate replay RUN --rejected` with the run that is named delivers what the service has not accepted.",
  },
  "HG-RUN-017": {
    title: "the drop lists the file and does not give it",
    hint: "Look at the file with a client of your own: its name, its rights, and whether it is there at all. Then `headgate replay RUN`.",
  },

  "HG-RUN-014": {
    title: "the readings of the file are lost before they were all delivered",
    hint: "A newer version of the file is delivered by itself. If it lacks readings of this one, send those again; then `headgate cancel RUN` puts this run away.",
  },

  "HG-PACK-001": {
    title: "the container cannot be unpacked",
    hint: "Is it complete, and an archive as its name says? A workbook is never unpacked when it is named .xlsx. Send it again, unharmed.",
  },
  "HG-PACK-002": {
    title: "the container is beyond a limit",
    hint: "If it is meant to be so, raise `archives` of the drop (`entriesMax`, `sizeMax`, `ratioMax`) and send it again.",
  },
  "HG-PACK-003": {
    title: "the container holds a name that is refused",
    hint: "Names that lead out of a container, name no file, or come twice are never unpacked. Find out who made it.",
  },
  "HG-PACK-004": {
    title: "the entry of a container cannot be unpacked",
    hint: "Send it unencrypted, as a plain file, stored or deflated; the other entries were taken up.",
  },
  "HG-PACK-005": {
    title: "the container lies too deep in others",
    hint: "Send it by itself, or raise `archives.depthMax` of the drop.",
  },
  "HG-PACK-006": {
    title: "the container is lost",
    hint: "The spool had lost its copy, and the drop has it no more. Send it again; entries that were delivered are known as duplicates.",
  },
  "HG-PACK-007": {
    title: "the copy of the container cannot be read or written now",
    hint: "Check space, rights and health of the disk that holds the spool.",
    again: "It is tried again.",
  },
  "HG-PACK-008": {
    title: "not every entry of the container was delivered",
    hint: "`headgate trace NAME` of the container shows each entry with its reason. Correct them and send the container again under the same name: what was delivered is not delivered twice.",
  },
  "HG-SPOOL-001": {
    title: "the spool cannot be opened",
    hint: "Check `spool.path`, and that this user may write there.",
  },
  "HG-SPOOL-002": {
    title: "the segment cannot be made again with the same bytes",
    hint: "What was accepted stays accepted. Compare with the stored points, then send the file again.",
  },
  "HG-SPOOL-003": {
    title: "a lookup table cannot be kept in the spool",
    hint: "Check that the disk of the spool has room and that this user may write there; the file is claimed at the next look.",
  },

  "HG-SPOOL-004": {
    title: "the spool cannot be written",
    hint: "Check that its disk has room and that this user may write there; the file is mapped again by itself.",
  },
  "HG-SPOOL-005": {
    title: "the budget of the spool is used up",
    hint: "Usually the service has been away for long, or held runs wait for a person: `headgate runs --waiting` tells. Files are taken again by themselves; raise `spool.budget` if the disk has room.",
  },
  "HG-SPOOL-006": {
    title: "the disk of the spool is nearly full",
    hint: "Free some of it, or lower `spool.headroom` or `spool.keepInputs.size`. Files are taken again by themselves.",
  },
  "HG-SPOOL-007": {
    title: "an input in the spool is not what was fetched",
    hint: "The disk of the spool has changed or lost bytes: check its health. The damaged copy is made again from the kept copy or from the drop.",
  },
} as const satisfies Record<string, RegisterEntry>;
