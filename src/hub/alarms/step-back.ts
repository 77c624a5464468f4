/**
 * Alarms whose newest judged point was removed. The newest one of those before it that is left counts again, so that
 * neither the removed one nor its date decides, and later ones follow.
 */
import type { HubStore } from "../store/store.ts";
import type { AlarmPoint } from "./conditions.ts";
import type { Watched } from "./watched.ts";

/** The point that counts again, and the one before it, by which a rate of change is judged. */
const LEFT = { order: "DESC", page: { offset: 0, limit: 2 }, view: { kind: "latest" }, labels: false } as const;

/** `points`: from the newest judged one on, or from an earlier one, in order of date; not `isAll` where more follow. */
export function isRemoved({ stored }: Watched, points: readonly AlarmPoint[], isAll: boolean): boolean {
  const { watermarkMs } = stored;
  if (watermarkMs === null || points.some(({ atMs }) => atMs === watermarkMs)) return false;
  return isAll || (points.at(-1)?.atMs ?? watermarkMs) > watermarkMs;
}

/** They know no more than what came before the point that counts again. A hold begins again. */
export async function stepBack({ points }: HubStore, removed: readonly Watched[]): Promise<void> {
  const asks = removed.flatMap(({ facts, stored: { memory, watermarkMs } }) =>
    facts === null ? [] : [{ variable: facts, fromMs: null, lastMs: memory.before?.atMs ?? watermarkMs }],
  );
  const found = await points.heads(asks, LEFT);
  for (const [index, watched] of removed.entries()) {
    const [newest, before] = found[index] ?? [];
    const { memory } = watched.stored;
    const { gap } = memory;
    // The run that the memory keeps beside the newest one ended in the point before the removed one.
    const isKnown = newest !== undefined && memory.before?.atMs === newest.atMs && memory.ran !== undefined;
    watched.stored = {
      ...watched.stored,
      watermarkMs: newest?.atMs ?? null,
      memory: {
        ...(before === undefined ? {} : { last: { atMs: before.atMs, value: before.value } }),
        ...(isKnown ? { run: memory.ran } : {}),
        ...(gap === undefined ? {} : { gap }),
      },
    };
    watched.isAhead = true;
  }
}
