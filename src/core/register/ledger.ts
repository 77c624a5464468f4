/** The codes of the ledger; a section of the register (`../register.ts`). */
import type { RegisterEntry } from "./entry.ts";

export const LEDGER_ERRORS = {
  "HG-LEDG-001": {
    title: "the ledger is in use by another process",
    hint: "One gateway at a time may own an SQLite ledger. Stop the other one, or give this one its own `ledger.path`.",
    isWorthARestart: true,
  },
  "HG-LEDG-002": {
    title: "the ledger cannot be opened",
    hint: "Check `ledger.path`, that it is on a local disk, and that this user may read and write there.",
  },
  "HG-LEDG-003": {
    title: "the ledger was written by another version of Headgate",
    hint:
      "Use the version that wrote it. To start with this one, let that one finish its runs, move delivered files out " +
      "of the drops, and remove the ledger or give `ledger` another place: a new one knows nothing of the old.",
  },
  "HG-LEDG-004": {
    title: "the ledger cannot be written or read at present",
    hint: "Nothing was changed. Check that its disk is neither full nor read-only.",
    again: "It is retried.",
  },
  "HG-LEDG-005": {
    title: "a file mapped again gives other bytes than before",
    hint:
      "The mapper, its settings or the file changed within one run. Nothing of it is sent; `headgate replay " +
      "RUN` makes a new run.",
  },

  "HG-LEDG-006": {
    title: "this file is being processed",
    hint: "Wait until it is at rest, or cancel its run first: `headgate cancel RUN`.",
  },
  "HG-LEDG-007": {
    title: "the ledger is damaged",
    hint:
      "`headgate ledger check` says what is wrong, and `--repair` repairs it where possible; otherwise " +
      "`headgate ledger restore FILE` replaces it by a backup.",
  },
  "HG-LEDG-008": {
    title: "the connection to the ledger's database was lost",
    hint:
      "It is restored automatically, and nothing was changed. Check that the server runs and can be reached, " +
      "and how many connections it allows.",
  },
  "HG-LEDG-009": {
    title: "the ledger's database has its own tools for backups",
    hint:
      "Run the command that the message names; a backup of the whole server, such as one with point-in-time " +
      "recovery, does as well.",
  },
  "HG-LEDG-010": {
    title: "another node owns this work",
    hint:
      "This node did not renew its lease for longer than `ledger.lease`, or another node works on this. Nothing " +
      "was changed; `headgate runs` shows the work of each node.",
  },
  "HG-LEDG-011": {
    title: "another process is this node",
    hint: "Each gateway on one ledger needs a `ledger.node` of its own, unlike those of all others.",
    isWorthARestart: true,
  },
  "HG-LEDG-012": {
    title: "another process that shares the ledger works on this",
    hint: "If the other process hangs (`headgate runs` shows which nodes are alive), stop it.",
    again: "It waits and is retried.",
  },
} as const satisfies Record<string, RegisterEntry>;
