/** The hub's public interface, as the session of this browser may use it. */
import type { DataRow } from "../../wire/data.ts";
import type { Source, Site as StoredSite, Variable } from "../../wire/structure.ts";
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

export type Parameters = Readonly<Record<string, string | number | boolean | readonly (string | number)[]>>;

export class SessionEnded extends Error {}

const base = document.getElementById("explorer")?.dataset["base"] ?? "";

export function pathOf(path: string, parameters: Parameters = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters))
    for (const one of [value].flat()) query.append(name, String(one));
  return `${base}${path}${query.size === 0 ? "" : `?${query}`}`;
}

/** Scripts prove with this token that they belong to a page of the hub. */
const token = document.querySelector<HTMLMetaElement>('meta[name="csrf-token"]')?.content ?? "";

export async function ask<Answer>(path: string, parameters?: Parameters, signal?: AbortSignal): Promise<Answer> {
  return (await answerOf(path, parameters, signal)).json() as Promise<Answer>;
}

async function answerOf(path: string, parameters?: Parameters, signal?: AbortSignal): Promise<Response> {
  const headers = { accept: "application/json", "x-csrf-token": token };
  const response = await fetch(pathOf(path, parameters), {
    headers,
    ...(signal === undefined ? {} : { signal }),
  }).catch((thrown: unknown) => {
    if (signal?.aborted) throw thrown;
    throw new Error(TEXTS.unreachable);
  });
  if (response.status === 401) throw new SessionEnded();
  if (response.ok) return response;
  const fault: unknown = await response.json().catch(() => null);
  throw new Error(String(Object(fault).detail ?? Object(fault).title ?? response.status));
}

/** Saves an answer as a file of this computer. */
export async function save(path: string, parameters: Parameters, name: string): Promise<void> {
  const address = URL.createObjectURL(await (await answerOf(path, parameters)).blob());
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  // Browsers begin to read it after the click.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
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
