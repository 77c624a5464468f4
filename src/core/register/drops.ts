/** The codes of drops and the HTTP intake; a section of the register (`../register.ts`). */
import type { RegisterEntry } from "./entry.ts";

export const DROP_ERRORS = {
  "HG-DROP-001": {
    title: "the drop cannot be reached",
    hint: "Check the host, the port and the network.",
    again: "It is retried at every poll.",
  },
  "HG-DROP-002": {
    title: "the folder of the drop does not exist",
    hint: "Create the folder, or correct the drop's `path`.",
  },
  "HG-DROP-003": {
    title: "the server refuses the credentials",
    hint: "Check the drop's `username` and its `password`, `privateKey` or `agent`.",
  },
  "HG-DROP-004": {
    title: "the server's host key is not one of the pinned keys",
    hint:
      "Compare the fingerprint with the one that the server's owner gives you; if it is right, approve it in the " +
      "console, or add it to the drop's `hostKeys`.",
  },
  "HG-DROP-005": {
    title: "the path leads out of the drop",
    hint: "Such a path is never followed. Find out who created this name or link.",
  },
  "HG-DROP-006": {
    title: "the file is no longer at the drop",
    hint: "The sender or another program removed it. It is taken again when it comes back.",
  },
  "HG-DROP-007": {
    title: "the drop does not permit it",
    hint:
      "Give the gateway's user the right to list and read, and to rename and delete when files are archived or " +
      "deleted.",
  },
  "HG-DROP-008": {
    title: "the file changed while it was fetched",
    hint:
      "It settles again and is then fetched again. If this repeats, raise the drop's `settle.observations` or " +
      "`settle.interval`.",
  },
  "HG-DROP-009": {
    title: "the source file could not be archived or deleted",
    hint: "The file is still at the drop. Check rights and space there.",
    again: "It is retried.",
  },
  "HG-DROP-010": {
    title: "the file is larger than the drop allows",
    hint: "Raise the drop's `maxFileSize` if this file is meant to be taken.",
  },
  "HG-DROP-011": {
    title: "the server's TLS certificate is not trusted",
    hint: "Correct `host` to a name in the certificate, or give the issuing certificate as the drop's `ca`.",
  },
  "HG-DROP-012": {
    title: "the work at the drop was interrupted",
    hint: "The gateway or the drop is being stopped; the work resumes at the next start.",
  },
  "HG-DROP-013": {
    title: "the fetched copy cannot be written",
    hint: "Check the space and the rights of the spool's folder. The source file is untouched.",
  },
  "HG-DROP-021": {
    title: "a listing of the drop was incomplete",
    hint: "Of a server that never ends its last line, two equal listings in a row are taken.",
    again: "It is retried, and no file counts as removed meanwhile.",
  },
  "HG-DROP-022": {
    title: "the name of the file cannot be used",
    hint: "Set `names: latin-1` at the drop when its senders write names in Latin-1, or have the file renamed there.",
  },

  "HG-INTK-001": {
    title: "the folder of the intake cannot be opened",
    hint: "Check `spool.path`, that its disk has space, and that this user may write there.",
  },
  "HG-INTK-002": {
    title: "the TLS key or certificate of the intake is not valid",
    hint: "Give `tls.key` and `tls.cert` as PEM text, for example by ${file:PATH}; the two must belong together.",
  },
  "HG-INTK-003": {
    title: "the intake holds bodies of another ledger",
    hint:
      "They were acknowledged, and no other ledger knows them. Start the gateway with the ledger that it had " +
      "until they are delivered (`headgate gateway --until-idle`), and then with the shared one.",
  },
  "HG-INTK-004": {
    title: "the body differs from the acknowledged one",
    hint:
      "The disk or the database of the intake has changed or lost bytes: check its health, and have the sender " +
      "send the body again.",
  },
  "HG-DROP-017": {
    title: "the server shows only a part of a folder",
    hint:
      "Raise the server's limit of listed files (Pure-FTPd: `LimitRecursion`), or archive and delete files so " +
      "that the folder holds fewer. Listed files are taken all the same.",
  },
  "HG-DROP-030": {
    title: "folders are deeper than the limit",
    hint:
      "Raise `depthMax` of the drop, or leave them out by `exclude` (such as `loop/**`): a link to its own " +
      "parent has no end. Files above the limit are taken all the same.",
  },
} as const satisfies Record<string, RegisterEntry>;
