/** The codes of the hub; a section of the register (`../register.ts`). */
import type { RegisterEntry } from "./entry.ts";

export const HUB_ERRORS = {
  "HG-HUB-001": {
    title: "the store of the hub cannot be opened",
    hint: "Check `store`: the path and that this user may write there, or the server, database, user and password.",
  },
  "HG-HUB-002": {
    title: "the store of the hub was written by another version",
    hint:
      "Use the version of Headgate that wrote it. To start with this one, export what you need through that one, and " +
      "remove the store or name another `store.path` or `store.schema`. Nothing was changed.",
  },
  "HG-HUB-003": {
    title: "the store of the hub is in use by another process",
    hint: "One hub at a time may own an SQLite store. Stop the other one, or give this one its own `store.path`.",
    isWorthARestart: true,
  },
  "HG-HUB-004": {
    title: "an account, client or user of the configuration is not consistent",
    hint: "Correct `accounts`, `clients` or `users` as the message says.",
  },
  "HG-HUB-005": {
    title: "the file-transfer server of the hub cannot be started",
    hint: "Correct `transfer` as the message says.",
  },
  "HG-HUB-006": {
    title: "the bytes of a stored file are missing or damaged",
    hint:
      "Restore the folder of the stored files from a backup, or have the sender send the file again; then offer it " +
      "to the triggers again (`POST /storage/{id}/process`).",
  },
  "HG-HUB-007": {
    title: "a file of master data cannot be applied now",
    hint: "It is tried again by itself. Check the store of the hub: its disk, or its server.",
  },
  "HG-HUB-008": {
    title: "a file of master data was refused",
    hint:
      "`GET /storage/{id}/report` names the rows and columns with the reasons. Nothing was changed: correct the file " +
      "and send it again.",
  },
  "HG-HUB-009": {
    title: "a file of master data was applied",
    hint: "`GET /storage/{id}/report` says what became of each row.",
  },
  "HG-HUB-010": {
    title: "the object storage of the stored files does not answer as it should",
    again: "It is asked again.",
    hint: "Check the object storage (`files`): whether it can be reached, its space, and the rights of the access key.",
  },
  "HG-HUB-011": {
    title: "the engine that runs R scripts is away",
    again: "The calculation is tried again.",
    hint: "Look whether the machine has memory for it (`calculated.memory`, `calculated.processes`).",
  },
  "HG-HUB-012": {
    title: "the engine that runs R scripts cannot be used as it is configured",
    hint: "Correct `calculated` as the message says.",
  },
  "HG-HUB-013": {
    title: "the outputs of a calculation could not be accepted",
    again: "They are calculated and handed over again.",
    hint: "Check the store of the hub: its disk, or its server.",
  },
} as const satisfies Record<string, RegisterEntry>;
