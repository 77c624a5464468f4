/**
 * The actions of people on a migration, with their names: `actions.jsonl` in its folder. A pause is requested by a file
 * beside it, which the process that runs the migration finds, from whichever process it comes.
 */
import { existsSync } from "node:fs";
import { appendFile, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { isoInstant, systemClock } from "#core/clock.ts";
import { writeDurably } from "#core/durable.ts";
import { unlessMissing } from "#core/errors.ts";

export const MIGRATION_ACTIONS = ["planned", "started", "paused", "ended", "failed"] as const;

export interface MigrationAction {
  readonly at: string;
  readonly by: string;
  readonly what: (typeof MIGRATION_ACTIONS)[number];
  /** The limits of a start, the reason of a pause, or the fault. */
  readonly words: string;
}

const ACTIONS = "actions.jsonl";
const PAUSE = "pause.json";
const CHECK_EVERY_MS = 250;

export async function noteAction(folder: string, action: Omit<MigrationAction, "at">): Promise<void> {
  const line = JSON.stringify({ at: isoInstant(systemClock.now()), ...action });
  // A crash may have cut off the line before.
  await appendFile(join(folder, ACTIONS), `\n${line}\n`);
}

/** Oldest first; a line that a crash cut off is left out. */
export async function actionsOf(folder: string): Promise<readonly MigrationAction[]> {
  const text = await unlessMissing(readFile(join(folder, ACTIONS), "utf8"), "");
  const lines = text.split("\n").filter((line) => line.startsWith("{") && line.endsWith("}"));
  return lines.map((line) => JSON.parse(line) as MigrationAction);
}

export interface PauseRequest {
  readonly by: string;
  readonly why: string;
}

export async function requestPause(folder: string, request: PauseRequest): Promise<void> {
  await writeDurably(join(folder, PAUSE), JSON.stringify(request));
}

export async function readPause(folder: string): Promise<PauseRequest | null> {
  const text = await unlessMissing(readFile(join(folder, PAUSE), "utf8"), null);
  return text === null ? null : (JSON.parse(text) as PauseRequest);
}

/** Called when a migration starts: a former pause no longer counts. */
export function clearPause(folder: string): Promise<void> {
  return rm(join(folder, PAUSE), { force: true });
}

/** Aborted once a pause is requested. */
export function watchPause(folder: string): { readonly signal: AbortSignal; close(): void } {
  const paused = new AbortController();
  const timer = setInterval(() => {
    if (existsSync(join(folder, PAUSE))) paused.abort();
  }, CHECK_EVERY_MS);
  return { signal: paused.signal, close: () => clearInterval(timer) };
}
