/** The codes of the gateway, a section for each of its stages; part of the register (`../register.ts`). */
import type { RegisterEntry } from "./entry.ts";

/** The codes of mapping. */
export const MAPPING_ERRORS = {
  "HG-MAP-001": {
    title: "the mapper does not exist",
    hint: "`headgate mapper list` shows the mappers that were found; correct the trigger's `mapper`.",
  },
  "HG-MAP-002": {
    title: "the mapper changed since this run was made",
    hint:
      "A run maps with exactly the mapper that it was made with. Restore that version, or replay the run with " +
      "the current one.",
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
    hint:
      "Correct the row and send the file again; `rows: lenient` on the trigger pushes the good rows and reports " +
      "the others.",
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
    hint: "Open it in an editor: is it complete, and in the format and encoding that the mapper expects?",
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
    title: "the thread or process of the mapper ended while it mapped the file",
    hint:
      "The mapper ended its own thread or process, or started work that failed later: " +
      "its author needs this message and the file.",
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
    hint: "Check that the disk of the spool has space and that this user may write there.",
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
    title: "a golden case of the mapper does not give the expected result",
    hint: "`headgate mapper test NAME` shows the difference; correct the mapper, or its case with `--update`.",
  },
  "HG-MAP-019": {
    title: "dates of the file need the zones of the sources",
    hint: "The file is mapped again by itself, with the zones as they are now.",
  },
  "HG-MAP-020": {
    title: "the zones of the sources cannot be read",
    hint: "The database of the hub has to be reachable; the file is claimed or mapped again by itself.",
  },
  "HG-MAP-030": {
    title: "the lookup table cannot be used",
    hint: "Correct the table or its entry in `lookups`, then replay the run; `headgate check` reads every table.",
  },
  "HG-MAP-031": {
    title: "more rows were refused than the trigger tolerates",
    hint:
      "The refused rows are listed with their reasons. Correct the file and send it again; or raise `rejectShare` of " +
      "the trigger and replay the run, which then delivers the other rows without these.",
  },
  "HG-MAP-040": {
    title: "the mapper left work running when its `map` ended",
    hint:
      "Its author has to await every promise that `map` begins (`await eachRow(…)`, `for await` over rows, no timers " +
      "or callbacks that emit later); then replay the run. `headgate mapper test NAME` shows it too.",
  },
  "HG-MAP-041": {
    title: "the mapper gave readings after its file was written",
    hint:
      "They are lost: its author has to await what `map` begins. Replay the named run with the corrected mapper, " +
      "then `headgate resume TRIGGER`.",
  },
} as const satisfies Record<string, RegisterEntry>;

/** The codes of migrations. */
export const MIGRATION_ERRORS = {
  "HG-MIGR-001": {
    title: "the server of the history is not configured",
    hint:
      "Add a drop of that server to the configuration: its login and its host key or certificate are taken from " +
      "there.",
  },
  "HG-MIGR-002": {
    title: "the migration is running already",
    hint: "Wait for the other process to end, or stop it; the same command then resumes it.",
  },
  "HG-MIGR-003": {
    title: "there is no such migration",
    hint: "`headgate migrate list` shows the migrations of this configuration.",
  },
  "HG-MIGR-004": {
    title: "files changed since they were delivered",
    hint:
      "Say what becomes of them: `--on-change again` delivers the new content, `--on-change skip` leaves what " +
      "was delivered.",
  },
  "HG-MIGR-005": {
    title: "the workbook of the report cannot be written",
    hint: "Name a file in a folder that exists and that this user may write to.",
  },
  "HG-MIGR-006": {
    title: "the migration does not run",
    hint: "`headgate migrate list` shows the migrations, and `headgate migrate resume ID` starts one.",
  },
  "HG-MIGR-007": {
    title: "the migration cannot be planned from the console",
    hint:
      "Name files below a folder of `operations.console.histories`, or plan it by `headgate migrate … --dry-run " +
      "--keep`; the console starts it then.",
  },
  "HG-MIGR-010": {
    title: "there is no terminal to ask for confirmation",
    hint: "Check the effect with `--dry-run`, and then confirm with `--yes`.",
  },
  "HG-MIGR-011": {
    title: "the undo of the migration has begun and not ended",
    hint: "`headgate migrate undo ID` resumes it. Until then it is unknown which readings of the migration are stored.",
  },
  "HG-MIGR-012": {
    title: "the ledger of the migration is a copy from before an undo",
    hint: "Move that file away, with its `-wal` and `-shm`; the same command then migrates everything again.",
  },
  "HG-MIGR-020": {
    title: "the table of sites, sources and variables cannot be used",
    hint:
      "Correct the named cells; docs/migration.md has the columns and an example. Nothing was created and " +
      "nothing sent.",
  },
  "HG-MIGR-021": {
    title: "the account lacks sites, sources or variables that cannot be created",
    hint: "Correct the table, or create these by hand; the same command then resumes. Nothing was sent.",
  },
} as const satisfies Record<string, RegisterEntry>;

/** The codes of the guard before the first push, and of provisioning. */
export const GUARD_ERRORS = {
  "HG-GUARD-001": {
    title: "targets do not exist in the account, or several variables are meant",
    hint:
      "Create the variables (by hand, or by a `provision` template of the trigger and `headgate provision " +
      "RUN`), or correct the mapper and `headgate replay RUN`. The run resumes automatically once every target " +
      "is one variable; `headgate recheck RUN` checks it now, `headgate release RUN` pushes it as it is.",
  },
  "HG-GUARD-002": {
    title: "the declared unit is not the unit of the variable",
    hint:
      "Values are stored unconverted. Convert them (setting `convertTo` of a bundled mapper, `unit(value, from, " +
      "to)` in one of your own) and `headgate replay RUN`, or correct the variable's unit: the run then resumes " +
      "automatically. `headgate release RUN` pushes the numbers as they are.",
  },
  "HG-GUARD-003": {
    title: "dates lie outside the ingestion limits",
    hint:
      "Is a year or a time zone misread? Correct the mapper and `headgate replay RUN`, or set `ingestion` of " +
      "the service to the limits of the account.",
  },
  "HG-GUARD-004": {
    title: "readings without a version go to versioned variables",
    hint:
      "Should a batch be sent twice, the service makes a second version. Set `version: run` of the trigger, or " +
      "`idempotency: true` of the service if it honours Idempotency-Key.",
  },
  "HG-GUARD-005": {
    title: "targets cannot be checked: the user may not read",
    hint: "Add the scope datahub-api and the right to read, or set `guard.unreadable` of the trigger.",
  },
  "HG-GUARD-006": {
    title: "the read interface cannot be reached",
    hint:
      "The run waits and resumes automatically. Check the address in `base` of the service; `guard: push` of " +
      "the trigger pushes unchecked.",
  },
  "HG-GUARD-007": {
    title: "later files delivered the same dates while the run was held",
    hint:
      "`headgate replay RUN` sends it without these dates, `headgate release RUN --overwrite` with all of them, " +
      "`headgate cancel RUN` gives it up.",
  },
  "HG-GUARD-008": {
    title: "the missing structure cannot be created",
    hint:
      "Correct the `provision` template of the trigger, or have a manager of the account create what is " +
      "missing; the run then resumes automatically.",
  },
  "HG-GUARD-009": {
    title: "readings of a released run would be discarded",
    hint:
      "Create their targets (`headgate provision RUN` where the trigger has a `provision` template), or correct " +
      "the mapper and `headgate replay RUN`. `headgate release RUN --yes` pushes it all the same.",
  },
  "HG-GUARD-010": {
    title: "the mapper, its settings or a table were changed while the run was held",
    hint:
      "`headgate replay RUN` maps it again with what is in force, `headgate release RUN` pushes it as it was mapped, " +
      "`headgate cancel RUN` gives it up. With `held.remap: always` it is mapped again without a question.",
  },
} as const satisfies Record<string, RegisterEntry>;

/** The codes of delivery. */
export const DELIVERY_ERRORS = {
  "HG-PUSH-001": {
    title: "the service cannot be reached",
    hint: "The batch is sent again later with the same bytes and operationId.",
  },
  "HG-PUSH-002": {
    title: "the token endpoint refuses the client credentials",
    hint:
      "Correct `credentials.clientId` and `credentials.clientSecret` of the service; the platform operator " +
      "issues them.",
  },
  "HG-PUSH-003": {
    title: "the token endpoint refuses the user credentials",
    hint: "Correct `credentials.username` and `credentials.password` of the service, or have the user unlocked.",
  },
  "HG-PUSH-004": {
    title: "the token endpoint refuses the scopes",
    hint:
      "Correct `scopes` of the service, or have the client allowed them; reading and pushing need datahub-api " +
      "and push-data.",
  },
  "HG-PUSH-005": {
    title: "the token belongs to another account",
    hint:
      "Correct `account` of the service, or use a user of that account; pushed data would go elsewhere and " +
      "reads would be empty.",
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
    hint: "Check `push` and `base` of the service, and proxies between them.",
  },
  "HG-PUSH-010": {
    title: "the service refuses a request",
    hint: "The message of the service says what it does not accept; the same request will be refused again.",
  },
  "HG-PUSH-011": {
    title: "the bytes of a batch differ from what was recorded",
    hint:
      "The segment in the spool was changed or damaged; nothing of it was sent. Replay the run from its kept " +
      "input.",
  },
  "HG-PUSH-012": {
    title: "the service refused a reading",
    hint: "Correct the reading in the file, or its target, and deliver the file again.",
  },
  "HG-PUSH-013": {
    title: "the segment of a run cannot be read or written at present",
    hint: "Check space, rights and health of the disk that holds the spool.",
    again: "It is retried.",
  },
  "HG-PUSH-014": {
    title: "the service knows an operationId with other bytes",
    hint:
      "Was an older copy of the ledger restored, or does another gateway use the same ids? Compare the stored " +
      "points with the file; `headgate replay RUN` pushes it under new ids.",
  },
  "HG-PUSH-015": {
    title: "a batch that may be stored already was refused whole",
    hint:
      "Compare the stored points with the file. `headgate replay RUN` pushes the file again under new ids: a " +
      "reading without a version that is stored already becomes a second version there. Where the service stores " +
      "a batch only once that comes twice under one Idempotency-Key, set `services[].idempotency`: such a batch " +
      "is then split.",
  },
  "HG-PUSH-016": {
    title: "the service has not applied an earlier operation with the same readings",
    hint: "`headgate trace` of that operation, at the gateway that sent it, shows it; at a hub GET /operations does.",
    again: "Once it is applied, what the service lacks of these readings is sent, and nothing else.",
  },
} as const satisfies Record<string, RegisterEntry>;

/** The codes of triggers. */
export const TRIGGER_ERRORS = {
  "HG-TRIG-001": {
    title: "no trigger claims this file name",
    hint:
      "`headgate trigger test NAME` explains it for each trigger; files are matched again when the triggers " +
      "change. Where such files may lie at the drop, name them in its `expectUnmatched`; otherwise move the file away.",
  },
  "HG-TRIG-002": {
    title: "the service did not list all of its triggers",
    hint: "The triggers that were read last stay in force; the gateway reads them again by itself.",
  },
  "HG-TRIG-003": {
    title: "a trigger of the service has no mapper here",
    hint:
      "At a gateway bind the name of its mapping to a mapper in `mappings` of the entry `from: service`, or add a " +
      "mapper of that name; then `headgate replay` the file. At a hub name another mapping in the file trigger (PUT " +
      "/fileTrigger), or add the mapper (`files.mappers`); then offer the file again (POST /storage/{id}/process).",
  },
} as const satisfies Record<string, RegisterEntry>;

/** The codes of drops and the HTTP intake. */
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
