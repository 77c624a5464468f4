/** Records in the folder of a migration: its request with its limits, its plan, and how it ended. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { writeDurably } from "#core/durable.ts";
import { wordsOf } from "#core/errors.ts";
import { clearPause, noteAction, readPause } from "#gateway/migration/actions.ts";
import { PlanKeeper } from "#gateway/migration/plan/kept-plan.ts";
import type { KnownMigration, MigrationLimits } from "#gateway/migration/report/reports.ts";
import type { Ended } from "#gateway/migration/run/run.ts";

const LIMITS = ["between", "rate", "concurrency", "pauseOnErrors", "verify", "provision"] as const;

/** Without those that are not limited. */
export function limitsOf(options: MigrationLimits): MigrationLimits {
  const given = LIMITS.map((name) => [name, options[name]] as const);
  return Object.fromEntries(given.filter(([, value]) => value !== undefined && value !== "none" && value !== false));
}

/** `between 22:00-05:00 Europe/Paris, rate 5000/s: the reason`; empty without any. */
function startWords(options: MigrationLimits & { readonly reason?: string }): string {
  const { between, rate, concurrency, pauseOnErrors } = limitsOf(options);
  const limits = Object.entries({ between, rate, concurrency, "pause on errors": pauseOnErrors })
    .flatMap(([name, value]) => (value === undefined ? [] : [`${name} ${value}`]))
    .join(", ");
  return [limits, options.reason ?? ""].filter((words) => words !== "").join(": ");
}

/** A fault of the work is part of the history. */
export async function noted<Result>(folder: string, by: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (thrown) {
    await noteAction(folder, { by, what: "failed", words: wordsOf(thrown) });
    throw thrown;
  }
}

/** Called before anything is taken: a former pause no longer counts. */
export async function noteStart(
  known: KnownMigration,
  options: MigrationLimits & { readonly config: string; readonly reason?: string },
  by: string,
): Promise<void> {
  await clearPause(known.folder);
  await writeFacts(known, options);
  await noteAction(known.folder, { by, what: "started", words: startWords(options) });
}

function writeFacts({ id, order, folder, limits }: KnownMigration, options: { readonly config: string }) {
  return writeDurably(join(folder, "migration.json"), JSON.stringify({ id, order, config: options.config, limits }));
}

/** The migration is known from then on, and nothing of it was taken. */
export async function keepPlan(
  known: KnownMigration,
  options: MigrationLimits & { readonly config: string },
  by: string,
): Promise<PlanKeeper> {
  await mkdir(known.folder, { recursive: true });
  await writeFacts({ ...known, limits: limitsOf(options) }, options);
  await noteAction(known.folder, { by, what: "planned", words: "" });
  const keeper = new PlanKeeper(known.folder, by);
  await keeper.begin();
  return keeper;
}

/** In the name of the person who paused it, where one did. */
export async function noteEnd(folder: string, { how, pausedBecause }: Ended, by: string): Promise<void> {
  const pause = how === "stopped" ? await readPause(folder) : null;
  const what = how === "done" ? "ended" : "paused";
  await noteAction(folder, { by: pause?.by ?? by, what, words: pause?.why ?? pausedBecause ?? "" });
}
