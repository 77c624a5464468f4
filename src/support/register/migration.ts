/** The codes of migrations; a section of the register (`../register.ts`). */
import type { RegisterEntry } from "./entry.ts";

export const MIGRATION_ERRORS = {
  "HG-MIGR-001": {
    title: "the server of the history is not configured",
    hint: "Add a drop of that server to the configuration: its login, and how the server is known, are taken from there.",
  },
  "HG-MIGR-002": {
    title: "the migration is under way already",
    hint: "Wait for the other process to end, or stop it; the same command then goes on where it stood.",
  },
  "HG-MIGR-003": {
    title: "there is no such migration",
    hint: "`headgate migrate list` shows the migrations of this configuration.",
  },
  "HG-MIGR-004": {
    title: "files changed since they were delivered",
    hint: "Say what becomes of them: `--on-change again` delivers the new content, `--on-change skip` leaves what was delivered.",
  },
  "HG-MIGR-010": {
    title: "nobody is there to be asked",
    hint: "Look at what would happen with `--dry-run`, and then say `--yes`.",
  },
  "HG-MIGR-011": {
    title: "the undoing of the migration has begun and not ended",
    hint: "`headgate migrate undo ID` goes on with it. Until then nobody can tell what of the migration is stored.",
  },
  "HG-MIGR-020": {
    title: "the table of sites, sources and variables cannot be used",
    hint: "Correct the named cells; docs/migration.md has the columns and an example. Nothing was created and nothing sent.",
  },
  "HG-MIGR-021": {
    title: "the account lacks sites, sources or variables that cannot be created",
    hint: "Correct the table, or create these by hand; the same command then goes on. Nothing was sent.",
  },
} as const satisfies Record<string, RegisterEntry>;
