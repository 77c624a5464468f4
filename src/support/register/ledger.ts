/** The codes of the ledger; a section of the register (`../register.ts`). */
import type { RegisterEntry } from "./entry.ts";

export const LEDGER_ERRORS = {
  "HG-LEDG-001": {
    title: "the ledger is in use by another process",
    hint: "One gateway at a time may own an SQLite ledger. Stop the other one, or give this one its own `ledger.path`.",
  },
  "HG-LEDG-002": {
    title: "the ledger cannot be opened",
    hint: "Check `ledger.path`, that it is on a local disk, and that this user may read and write there.",
  },
  "HG-LEDG-003": {
    title: "the ledger was written by another version of Headgate",
    hint: "A newer Headgate cannot be followed by an older one on the same ledger; an older ledger is brought up when the gateway starts.",
  },
  "HG-LEDG-004": {
    title: "the ledger cannot be written or read now",
    hint: "Nothing was changed. Check that its disk is neither full nor read-only.",
    again: "It is tried again.",
  },
  "HG-LEDG-005": {
    title: "a file mapped again gives other bytes than before",
    hint: "The mapper, its settings or the file changed within one run. Nothing of it is sent; `headgate replay RUN` makes a new run.",
  },

  "HG-LEDG-006": {
    title: "something of this file is under way",
    hint: "Wait until it is at rest, or cancel its run first: `headgate cancel RUN`.",
  },
  "HG-LEDG-007": {
    title: "the ledger is not whole",
    hint: "`headgate ledger check` says what is wrong, and `--repair` repairs what can be; otherwise `headgate ledger restore FILE` puts a backup in its place.",
  },
  "HG-LEDG-008": {
    title: "the connection to the ledger's database was lost",
    hint: "It is made again by itself, and nothing was changed. Check that the server runs and can be reached, and how many connections it allows.",
  },
  "HG-LEDG-009": {
    title: "the ledger's database has its own means for backups",
    hint: "Run the command that the message names; a backup of the whole server, such as one with point-in-time recovery, does as well.",
  },
  "HG-LEDG-010": {
    title: "another node has it",
    hint: "This node was not heard of for longer than `ledger.lease`, or another one works on this. Nothing was changed; `headgate runs` shows which node has what.",
  },
  "HG-LEDG-011": {
    title: "another process is this node",
    hint: "Each gateway on one ledger needs a `ledger.node` of its own, unlike those of all others.",
  },
  "HG-LEDG-012": {
    title: "another process that shares the ledger is at it",
    hint: "If the other process hangs (`headgate runs` shows which nodes are heard of), stop it.",
    again: "It waits and is tried again.",
  },
} as const satisfies Record<string, RegisterEntry>;
