/** Handlers of the endpoints about migrations, which the program performs that starts the gateway. */

import { RejectedError } from "#core/errors.ts";
import { shareQuery } from "#core/shared-query.ts";
import type { GatewayConfig } from "../config.ts";
import type { DownloadedFile, HandlersOf } from "../operations/api/endpoint.ts";
import type {
  MigrationFacts,
  migrationEndpoints,
  PlanRequest,
  StartRequest,
  UndoPreview,
} from "../operations/api/migrations.ts";
import { unknownSubject } from "../operations/problems.ts";

/** Reads and controls the migrations of the spool with this path. Errors are those of the commands. */
export interface MigrationControl {
  list(spool: string): Promise<MigrationFacts[]>;
  /** Returns the id once the plan has begun. `histories`: folders that the files must be below. */
  plan(request: PlanRequest, by: string, histories: readonly string[]): Promise<string>;
  /** Returns the answer in words once it runs. */
  start(spool: string, id: string, request: StartRequest, by: string): Promise<string>;
  pause(spool: string, id: string, pause: { readonly by: string; readonly why: string }): Promise<void>;
  previewUndo(id: string, signal: AbortSignal): Promise<UndoPreview>;
  /** Null when there is none. */
  report(spool: string, id: string): Promise<DownloadedFile | null>;
}

/** Milliseconds; each migration has a ledger of its own, which is opened for an answer. */
const FRESH_MS = 2_000;

export function migrationHandlers(
  config: GatewayConfig,
  given: MigrationControl | undefined,
): HandlersOf<typeof migrationEndpoints> {
  const spool = config.spool.path;
  const { histories } = config.operations.console;
  const query = shareQuery(async () => (given === undefined ? [] : await given.list(spool)));
  const control = () => {
    if (given !== undefined) return given;
    throw new RejectedError("HG-MIGR-007", {
      operation: "control migrations",
      subject: spool,
      message: "this gateway shows no migrations",
    });
  };
  return {
    migrations: () => query.within(FRESH_MS),
    places: () => ({ histories: [...histories], services: config.services.map(({ name }) => name) }),
    // After a command the list shows what it did.
    async plan({ body, person }) {
      const id = await control().plan(body, person.name, histories);
      await query.next();
      return { id };
    },
    async start({ params, body, person }) {
      const words = await control().start(spool, params.id, body, person.name);
      await query.next();
      return { words };
    },
    async pause({ params, body, person }) {
      await control().pause(spool, params.id, { by: person.name, why: body.why });
      await query.next();
      return { words: "it stops when its running batches have ended" };
    },
    previewUndo: ({ params, signal }) => control().previewUndo(params.id, signal),
    async report({ params }) {
      const found = await control().report(spool, params.id);
      if (found !== null) return found;
      throw unknownSubject({ operation: "read report", subject: params.id, message: "there is no report yet" });
    },
  };
}
