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
  "HG-PUSH-002": {
    title: "the token endpoint refuses the client credentials",
    hint: "Correct `credentials.clientId` and `credentials.clientSecret` of the service; the platform operator issues them.",
  },
  "HG-PUSH-003": {
    title: "the token endpoint refuses the user credentials",
    hint: "Correct `credentials.username` and `credentials.password` of the service, or have the user unlocked.",
  },
  "HG-PUSH-004": {
    title: "the token endpoint refuses the scopes",
    hint: "Correct `scopes` of the service, or have the client allowed them; reading and pushing need datahub-api and push-data.",
  },
  "HG-PUSH-005": {
    title: "the token belongs to another account",
    hint: "Correct `account` of the service, or use a user of that account; pushed data would go elsewhere and reads would be empty.",
  },
  "HG-PUSH-006": {
    title: "the token endpoint does not answer as a token endpoint",
    hint: "Check the address in `token` of the service.",
  },
  "HG-PUSH-007": {
    title: "the service refuses the token",
    hint: "Check that the token's scopes cover the call and that `token`, `base` and `push` belong to one service.",
  },
  "HG-PUSH-008": {
    title: "the user lacks a right",
    hint: "A manager of the account can grant it; pushing needs the right Data Pusher (datapusher.standard).",
  },
  "HG-PUSH-009": {
    title: "the address does not answer as the service",
    hint: "Check `push` and `base` of the service, and proxies on the way.",
  },
  "HG-PUSH-010": {
    title: "the service refuses a request",
    hint: "The service's words say what it does not accept; the same request will be refused again.",
  },
  "HG-PUSH-011": {
    title: "the bytes of a batch differ from what was recorded",
    hint: "The segment in the spool was changed or damaged; nothing of it was sent. Replay the run from its kept input.",
  },
  "HG-PUSH-012": {
    title: "the service refused a reading",
    hint: "Correct the reading in the file, or its target, and deliver the file again.",
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
