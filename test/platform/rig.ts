/** A hub with a gateway inside, and the calls that tests make. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "vitest";
import { type Platform, startPlatform } from "#app/platform.ts";
import { silentLog } from "#core/log.ts";
import { hubOptions } from "#hub/options.ts";
import { callsOf, type HubCalls, rawOptions, temporaryDirectory } from "../hub/fixture.ts";
import { LITTLE_HASHING as hashCost } from "../support/hash-cost.ts";

/** As a person of an account; account 1 by default. */
export interface By {
  readonly as?: string;
  readonly account?: number;
}

export const SECOND: By = { as: "second", account: 2 };

export interface PlatformRig extends HubCalls {
  readonly directory: string;
  /** The hub.yaml, as the hub was started with it. */
  readonly config: string;
  platform(): Platform;
  /** The id of the new file. */
  store(name: string, content: string | Uint8Array<ArrayBuffer>, by?: By): Promise<number>;
  /** The id of the new trigger: for uploaded files with names that begin so. */
  trigger(beginning: string, mapping: string, more?: object, by?: By): Promise<number>;
  /** A variable that files name by the serial number; its id. */
  variable(serial: string, by?: By): Promise<number>;
  /** Values by date, as they are stored. */
  values(variableId: number, by?: By): Promise<Readonly<Record<string, number>>>;
  /** Waits until the file is in this state. */
  became(id: number, state: string, by?: By): Promise<Record<string, unknown>>;
  restart(): Promise<void>;
  close(): Promise<void>;
}

export async function startRig(more: object = {}): Promise<PlatformRig> {
  const { path: directory, remove } = await temporaryDirectory();
  const files = { path: join(directory, "files"), spool: join(directory, "spool") };
  const raw = rawOptions(directory, { files, ...more });
  const config = join(directory, "hub.yaml");
  await writeFile(config, JSON.stringify(raw));
  const options = hubOptions.parse(raw);
  const start = () => startPlatform(options, { log: silentLog, hashCost });
  let platform = await start();
  const calls = callsOf(() => platform.url);
  return {
    ...calls,
    ...shortcuts(calls),
    directory,
    config,
    platform: () => platform,
    async restart() {
      await platform.close();
      platform = await start();
    },
    async close() {
      await platform.close();
      await remove();
    },
  };
}

export function shortcuts(calls: HubCalls) {
  return {
    async store(name: string, content: string | Uint8Array<ArrayBuffer>, by: By = {}) {
      const { status, body } = await calls.upload(content, { Filename: name }, by);
      if (status !== 200) throw new Error(JSON.stringify(body));
      return Number(body);
    },
    trigger: (beginning: string, mapping: string, more: object = {}, by: By = {}): Promise<number> => {
      const fileNamePatternMatches = [{ filterType: "StartsWith", value: beginning }];
      const body = { ingestionType: "UploadInStorage", fileNamePatternMatches, mapping, ...more };
      return calls.post("/fileTrigger", body, by);
    },
    async variable(serial: string, by: By = {}) {
      const siteId = await calls.post("/sites", { name: serial, typeId: 3, timeZoneId: "Europe/Paris" }, by);
      const source = { name: serial, siteId, sourceTypeId: 1, serialNumber: serial };
      const { id: sourceId } = await calls.post("/sources", source, by);
      const body = { name: serial, sourceId, variableTypeId: 0, unitId: 8, mappingConfig: "kWh" };
      return (await calls.post("/variables", body, by)) as number;
    },
    async values(variableId: number, by: By = {}) {
      const rows = await calls.get("/data", { VariableIds: variableId, DisplayLevel: "ValueVariableDate" }, by);
      return Object.fromEntries(rows.map((row: { date: string; rawValue: number }) => [row.date, row.rawValue]));
    },
    async became(id: number, state: string, by: By = {}) {
      const file = () => calls.get(`/storage/${id}`, undefined, by);
      await expect.poll(async () => (await file()).state, { message: `file ${id}` }).toBe(state);
      return await file();
    },
  };
}

/** A standard file with one reading for a source. */
export function standardCsv(serial: string, date: string, value: number | string): string {
  return `date,value,source_serial_number,mapping_config\n${date},${value},${serial},kWh\n`;
}
