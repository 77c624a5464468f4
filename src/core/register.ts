/**
 * The register of error codes: one place, generated into `docs/errors.md`. A code never changes its meaning; titles
 * and hints may be reworded. Each stage has its own section.
 */
import type { RegisterEntry } from "./register/entry.ts";
import {
  DELIVERY_ERRORS,
  DROP_ERRORS,
  GUARD_ERRORS,
  MAPPING_ERRORS,
  MIGRATION_ERRORS,
  RUN_ERRORS,
  TRIGGER_ERRORS,
} from "./register/gateway.ts";

/** The codes of operations. */
const OPERATIONS_ERRORS = {
  "HG-OPS-001": {
    title: "a notification was not accepted",
    hint: "It is retried. Check the receiver in `notifications`; `headgate notify test` tries them all.",
  },
  "HG-OPS-003": {
    title: "no receiver of notifications is configured",
    hint:
      "Name one in `notifications.receivers`, a webhook or an e-mail; docs/operations.md#notifications has " +
      "examples.",
  },
  "HG-OPS-002": {
    title: "the gateway does not accept the command",
    hint:
      "Does it run with another configuration, or is it just starting or stopping? Try again, or stop it: " +
      "without a gateway the command writes to its ledger.",
  },
  "HG-OPS-004": {
    title: "nothing of this name is known",
    hint: "It may have been forgotten, or its name is written differently.",
  },
  "HG-OPS-005": {
    title: "the upload is too large",
    hint: "Send a smaller file, or put it into the drop itself.",
  },
  "HG-OPS-006": {
    title: "the request is not valid",
    hint: "`GET /operations/openapi.json` describes what each address takes.",
  },
  "HG-OPS-007": {
    title: "people sign in to this console by name and password",
    hint: "Open the console and sign in as one of `operations.console.users`.",
  },
  "HG-OPS-008": {
    title: "there is no console to sign in to",
    hint: "Start the gateway, and run the command as its user.",
  },
  "HG-OPS-009": {
    title: "too many pages follow the changes",
    hint: "Close pages of the console that are not needed.",
  },
  "HG-OPS-010": {
    title: "a newer request took its place",
    hint: "Nothing was changed. The result of the newer request counts.",
  },
  "HG-OPS-011": {
    title: "the case cannot be added",
    hint: "Nothing was changed. A case needs a mapper with a folder of its own, a new name and a short file.",
  },
  "HG-OPS-012": {
    title: "this cannot be done at the drop",
    hint: "Nothing was changed. The message says why, and what the drop permits.",
  },
  "HG-OPS-013": {
    title: "the text takes too long to check",
    hint: "Nothing was changed. Check it with `headgate check --config FILE`, or check a shorter text.",
  },
  "HG-OPS-014": {
    title: "this is for operators",
    hint: "Sign in as an operator, or leave those options out.",
  },
} as const satisfies Record<string, RegisterEntry>;

/** The codes of the hub. */
const HUB_ERRORS = {
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

/** The codes of the ledger. */
const LEDGER_ERRORS = {
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

/** The codes of configuration. */
const CONFIG_ERRORS = {
  "HG-CONF-001": {
    title: "the configuration file cannot be read",
    hint:
      "Name the file with -c or in HEADGATE_CONFIG; otherwise it is gateway.yaml (hub.yaml for the hub) in the " +
      "current folder. Check that this user may read it; `headgate init` writes a new one.",
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
  "HG-CONF-005": {
    title: "other users can read files of the state",
    hint: "Run: chmod -R go-rwx PATH, for the path that is named.",
  },
  "HG-CONF-006": {
    title: "this is the configuration of a hub, and that of a gateway is needed",
    hint:
      "Name that of the gateway with -c. A hub is run by `headgate hub -c FILE` and asked by `headgate health hub -c " +
      "FILE`; `check`, `trace`, `runs` and the other commands for files take its configuration, too. The hub has no " +
      "notifications of its own (watch its `metrics.listen`), and its structure comes by `POST` and master data.",
  },
  "HG-CONF-007": {
    title: "this is the configuration of a gateway, and that of a hub is needed",
    hint:
      "Name that of the hub with -c. A gateway is run by `headgate gateway -c FILE` and asked by `headgate health " +
      "gateway -c FILE`.",
  },
} as const satisfies Record<string, RegisterEntry>;

/** The codes of the command line. */
const COMMAND_ERRORS = {
  "HG-CLI-001": {
    title: "an option has a value that it cannot have",
    hint: "`headgate COMMAND --help` shows the options with an example.",
  },
  "HG-CLI-002": {
    title: "nothing has this name",
    hint: "`headgate runs` lists the runs; a file that was never seen at a drop is not in the ledger.",
  },
  "HG-CLI-003": {
    title: "there is no ledger yet",
    hint: "Start the gateway first: `headgate gateway -c FILE`, or the hub that it is inside: `headgate hub -c FILE`.",
  },

  "HG-CLI-004": {
    title: "the samples are not here",
    hint: "The demo runs from a checkout of the project; the published package comes without `samples/`.",
  },
  "HG-CLI-005": {
    title: "this folder exists and is not the demo's",
    hint: "It was left unchanged. Name another folder with --state, or move this one away.",
  },

  "HG-CLI-006": {
    title: "the file cannot be mapped",
    hint: "Correct the file or the settings of the mapper; the place is named before the reason.",
  },
  "HG-CLI-007": {
    title: "another demo is running in this folder",
    hint: "End the other one, or name another folder for this one with --state.",
  },
  "HG-CLI-008": {
    title: "the folder of the demo cannot be used",
    hint: "Check that this user may write there, or name another folder with --state.",
  },
  "HG-CLI-009": {
    title: "the file exists already",
    hint: "It was left unchanged. Name another file with --output, or move this one away.",
  },
} as const satisfies Record<string, RegisterEntry>;

/** The codes of bugs. */
const BUG_ERRORS = {
  "HG-BUG-001": {
    title: "an invariant does not hold",
    hint:
      "This is a defect of Headgate. Please report it with the log around it; the gateway stopped before doing " +
      "harm.",
  },
} as const satisfies Record<string, RegisterEntry>;

const entries = {
  ...CONFIG_ERRORS,
  ...COMMAND_ERRORS,
  ...DROP_ERRORS,
  ...TRIGGER_ERRORS,
  ...MAPPING_ERRORS,
  ...RUN_ERRORS,
  ...DELIVERY_ERRORS,
  ...GUARD_ERRORS,
  ...LEDGER_ERRORS,
  ...MIGRATION_ERRORS,
  ...OPERATIONS_ERRORS,
  ...HUB_ERRORS,
  ...BUG_ERRORS,
} as const satisfies Record<string, RegisterEntry>;

export type ErrorCode = keyof typeof entries;

export const REGISTER: Readonly<Record<ErrorCode, RegisterEntry>> = entries;
