/**
 * The register of error codes: one place, generated into `docs/errors.md`.
 * A code is stable for ever; titles and hints may be reworded. Each stage has its own section.
 */
export interface RegisterEntry {
  readonly title: string;
  readonly hint: string;
}

const entries = {
  // ── configuration and command line
  "HG-CONF-001": {
    title: "the configuration file cannot be read",
    hint: "Check the path given with -c, and that this user may read it.",
  },
  "HG-CONF-002": {
    title: "the configuration is not valid",
    hint: "Correct the lines named; `headgate check -c FILE` checks again.",
  },
  "HG-CONF-003": {
    title: "a secret cannot be resolved",
    hint: "Set the environment variable or create the file that ${env:…} or ${file:…} names.",
  },
  "HG-CONF-004": {
    title: "an address cannot be listened on",
    hint: "Another program may use this port: choose another in the configuration, or 0 for any free one.",
  },

  // ── drops
  "HG-DROP-001": {
    title: "the drop cannot be reached",
    hint: "It is tried again at every poll. Check the host, the port and the network.",
  },

  // ── triggers
  "HG-TRIG-001": {
    title: "no trigger claims this file name",
    hint: "`headgate trigger test NAME` says for each trigger why not; files are matched again when the triggers change.",
  },

  // ── mapping
  "HG-MAP-001": {
    title: "the mapper does not exist",
    hint: "`headgate mapper list` shows the mappers that were found; correct the trigger's `mapper`.",
  },

  // ── delivery
  "HG-PUSH-001": {
    title: "the service cannot be reached",
    hint: "The batch is sent again later with the same bytes and operationId.",
  },

  // ── ledger and spool
  "HG-LEDG-001": {
    title: "the ledger is in use by another process",
    hint: "One gateway at a time may own an SQLite ledger. Stop the other one, or give this one its own `ledger.path`.",
  },

  // ── hub
  "HG-HUB-001": {
    title: "the store of the hub cannot be opened",
    hint: "Check the path of `store` and that this user may write there.",
  },

  // ── bugs
  "HG-BUG-001": {
    title: "an invariant does not hold",
    hint: "This is a defect of Headgate. Please report it with the log around it; the gateway stopped before doing harm.",
  },
} as const satisfies Record<string, RegisterEntry>;

export type ErrorCode = keyof typeof entries;

export const REGISTER: Readonly<Record<ErrorCode, RegisterEntry>> = entries;
