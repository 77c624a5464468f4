/** The hub's public interface, as the session of this browser may use it. */
import type { DataRow } from "#wire/data.ts";
import type { Source, Site as StoredSite, Variable } from "#wire/structure.ts";
import { addressWith, answerOf, type Parameters, SessionEnded } from "../kit/browser/api.ts";
import { readRows } from "../kit/browser/rows.ts";
import { TEXTS } from "./texts.ts";

export type { DataRow, Source, Variable };
export interface Site extends Pick<StoredSite, "id" | "name"> {
  readonly timeZoneId?: string | null | undefined;
}
export interface Unit {
  readonly id: number;
  readonly name: string;
  readonly symbol: string;
  readonly unitFamilyId: number;
}
export interface Found {
  readonly entity: "Site" | "Source" | "Variable";
  readonly id: number;
  readonly name: string;
  readonly siteId: number;
  readonly siteName: string;
  readonly sourceId: number | null;
  readonly sourceName: string | null;
  readonly serialNumber: string | null;
  readonly unitId: number | null;
}

export type { Parameters };
export { SessionEnded };

const base = document.getElementById("explorer")?.dataset["base"] ?? "";

export function pathOf(path: string, parameters: Parameters = {}): string {
  return addressWith(`${base}${path}`, parameters);
}

export async function ask<Answer>(path: string, parameters?: Parameters, signal?: AbortSignal): Promise<Answer> {
  const response = await answerOf(pathOf(path, parameters), { signal, unreachable: TEXTS.unreachable });
  return response.json() as Promise<Answer>;
}

/** Gives rows to `take` as they come. */
export async function askRows(
  path: string,
  parameters: Parameters,
  take: (rows: readonly DataRow[]) => void,
  signal: AbortSignal,
): Promise<void> {
  await readRows(await answerOf(pathOf(path, parameters), { signal, unreachable: TEXTS.unreachable }), take);
}

let known: Promise<ReadonlyMap<number, Unit>> | null = null;

/** All units by their ids; asked for once. */
export function units(): Promise<ReadonlyMap<number, Unit>> {
  known ??= ask<readonly Unit[]>("/units").then(
    (list) => new Map(list.map((unit) => [unit.id, unit])),
    (thrown: unknown) => {
      known = null;
      throw thrown;
    },
  );
  return known;
}
