/** The codes of migrations; a section of the register (`../register.ts`). */
import type { RegisterEntry } from "./entry.ts";

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
