/** Migrations for the console, loaded when they are asked for: a daemon needs nothing else of them. */
import type { MigrationControl } from "#gateway/console/migrations.ts";
import type { MigrationProcesses } from "./control.ts";

export function controlMigrations(configFile: string): MigrationControl & { close(): Promise<void> } {
  let made: Promise<MigrationProcesses> | null = null;
  const control = () => {
    made ??= import("./control.ts").then(({ MigrationProcesses }) => new MigrationProcesses(configFile));
    return made;
  };
  return {
    list: async (spool) => (await control()).list(spool),
    plan: async (request, by, histories) => (await control()).plan(request, by, histories),
    start: async (spool, id, request, by) => (await control()).start(spool, id, request, by),
    pause: async (spool, id, pause) => (await control()).pause(spool, id, pause),
    previewUndo: async (id, signal) => (await control()).previewUndo(id, signal),
    report: async (spool, id) => (await control()).report(spool, id),
    close: async () => await (await made)?.close(),
  };
}
