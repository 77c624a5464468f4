/**
 * The register of error codes: one place, generated into `docs/errors.md`.
 * A code is stable for ever; titles and hints may be reworded. Each stage has its own section.
 */
import { DELIVERY_ERRORS } from "./register-delivery.ts";
import type { RegisterEntry } from "./register-entry.ts";

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

  // ── command line
  "HG-CLI-001": {
    title: "an option has a value that it cannot have",
    hint: "`headgate COMMAND --help` shows the options with an example.",
  },
  "HG-CLI-002": {
    title: "nothing is known by this name",
    hint: "`headgate runs` lists what was done; a file that was never seen at a drop is not in the ledger.",
  },
  "HG-CLI-003": {
    title: "there is no ledger yet",
    hint: "Start the gateway first: `headgate gateway -c FILE`.",
  },

  "HG-CLI-004": {
    title: "the samples are not here",
    hint: "The demo runs from a checkout of the project; the published package comes without `samples/`.",
  },
  "HG-CLI-005": {
    title: "this folder exists and is not the demo's",
    hint: "It was not touched. Name another folder with --state, or move this one away.",
  },

  "HG-CLI-006": {
    title: "the file cannot be mapped",
    hint: "Correct the file or the settings of the mapper; the place is named before the reason.",
  },
  "HG-CLI-007": {
    title: "another demo is running in this folder",
    hint: "End the other one, or give this one a folder of its own with --state.",
  },
  "HG-CLI-008": {
    title: "the folder of the demo cannot be used",
    hint: "Check that this user may write there, or name another folder with --state.",
  },

  // ── drops
  "HG-DROP-001": {
    title: "the drop cannot be reached",
    hint: "It is tried again at every poll. Check the host, the port and the network.",
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
    hint: "Compare the fingerprint with the one that the server's owner tells you; if it is right, add it to the drop's `hostKeys`.",
  },
  "HG-DROP-005": {
    title: "the path leads out of the drop",
    hint: "Such a path is never followed. Find out who made this name or link.",
  },
  "HG-DROP-006": {
    title: "the file is no longer at the drop",
    hint: "The sender or another program took it away. It is taken again when it comes back.",
  },
  "HG-DROP-007": {
    title: "the drop does not permit it",
    hint: "Give the gateway's user the right to list and read, and to rename and delete when files are archived or deleted.",
  },
  "HG-DROP-008": {
    title: "the file changed while it was fetched",
    hint: "It settles again and is then fetched anew. If this repeats, raise the drop's `settle.observations` or `settle.interval`.",
  },
  "HG-DROP-009": {
    title: "the source file could not be archived or deleted",
    hint: "It still lies at the drop and is tried again. Check rights and space at the drop.",
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
    hint: "The gateway or the drop is being stopped; the work goes on at the next start.",
  },
  "HG-DROP-013": {
    title: "the fetched copy cannot be written",
    hint: "Check the space and the rights of the spool's folder. The source file is untouched.",
  },

  // ── HTTP intake
  "HG-INTK-001": {
    title: "the folder of the intake cannot be opened",
    hint: "Check `spool.path`, that its disk has room, and that this user may write there.",
  },
  "HG-INTK-002": {
    title: "the TLS key or certificate of the intake is not valid",
    hint: "Give `tls.key` and `tls.cert` as PEM text, for example by ${file:PATH}; the two must belong together.",
  },
  "HG-DROP-017": {
    title: "the server shows only a part of a folder",
    hint: "Raise the server's limit of listed files (Pure-FTPd: `LimitRecursion`), or archive and delete files so that fewer lie there. What is listed is taken all the same.",
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
  "HG-MAP-002": {
    title: "the mapper changed since this run was made",
    hint: "A run maps with exactly the mapper that it was made with. Put that version back, or replay the run with the current one.",
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
    hint: "Correct the row and send the file again; `rows: lenient` on the trigger pushes the good rows and reports the others.",
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
    hint: "Open it in an editor: is it complete, and of the format and encoding that the mapper expects?",
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
    title: "the process of the mapper ended while it mapped the file",
    hint: "The mapper ended its own process or left work behind that failed: its author needs this message and the file.",
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
    hint: "Check that the disk of the spool has room and that this user may write there.",
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
    title: "a golden case of the mapper does not come out as expected",
    hint: "`headgate mapper test NAME` shows the difference; correct the mapper, or its case with `--update`.",
  },
  "HG-MAP-030": {
    title: "the lookup table cannot be used",
    hint: "Correct the table or its entry in `lookups`, then replay the run; `headgate check` reads every table.",
  },
  "HG-MAP-031": {
    title: "more rows were refused than the trigger tolerates",
    hint: "The refused rows are listed with their reasons. Correct the file and send it again, or raise `rejectShare` of the trigger, then replay the run.",
  },

  // ── runs and their spool
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

  // ── containers: compressed arrivals
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
    hint: "Check space, rights and health of the disk that holds the spool; it is tried again.",
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

  // ── delivery
  ...DELIVERY_ERRORS,

  // ── ledger and spool
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
    hint: "Nothing was changed, and it is tried again. Check that its disk is neither full nor read-only.",
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

  // ── operations
  "HG-OPS-001": {
    title: "an alarm was not accepted",
    hint: "It is sent again. Check `operations.alarm.url`.",
  },
  "HG-OPS-002": {
    title: "the gateway does not take the order",
    hint: "Is it another one than that of this configuration, or is it just starting or ending? Try again, or stop it: without a gateway the order goes to its ledger.",
  },

  // ── hub
  "HG-HUB-001": {
    title: "the store of the hub cannot be opened",
    hint: "Check the path of `store` and that this user may write there.",
  },
  "HG-HUB-002": {
    title: "the store of the hub was written by a newer version",
    hint: "Use the newer version of Headgate, or another `store.path`. Nothing was changed.",
  },
  "HG-HUB-003": {
    title: "the store of the hub is in use by another process",
    hint: "One hub at a time may own an SQLite store. Stop the other one, or give this one its own `store.path`.",
  },
  "HG-HUB-004": {
    title: "an account, client or user of the configuration is not consistent",
    hint: "Correct `accounts`, `clients` or `users` as the message says.",
  },

  // ── bugs
  "HG-BUG-001": {
    title: "an invariant does not hold",
    hint: "This is a defect of Headgate. Please report it with the log around it; the gateway stopped before doing harm.",
  },
} as const satisfies Record<string, RegisterEntry>;

export type ErrorCode = keyof typeof entries;

export const REGISTER: Readonly<Record<ErrorCode, RegisterEntry>> = entries;
