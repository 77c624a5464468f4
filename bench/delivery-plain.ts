/**
 * What a good engineer writes in half an hour to bring files to the service: csv-parse, grouped, posted by
 * `fetch`, some calls at a time. Nothing is durable, nothing is sent again: `delivery-plain.ts MANNER URL
 * FOLDER`. `whole` parses a file at once, which is the faster, and `stream` row by row, which holds no more
 * than a batch.
 */
import { createReadStream, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "csv-parse";
import { parse as parseSync } from "csv-parse/sync";
import { measure, peakMegabytes } from "./child.ts";

export interface PlainAnswer {
  /** Seconds. */
  readonly wall: number;
  readonly cpu: number;
  readonly points: number;
  /** Megabytes. */
  readonly peak: number;
}

interface Row {
  readonly date: string;
  readonly source_serial_number: string;
  readonly mapping_config: string;
  readonly value: string;
}

interface Element {
  readonly sourceSerialNumber: string;
  readonly mappingConfig: string;
  readonly data: { readonly date: string; readonly value: number }[];
}

/** As the gateway has them by default. */
const BATCH_POINTS = 5000;
const CALLS_MAX = 4;

const [manner = "whole", url = "", folder = ""] = process.argv.slice(2);
let token = "";
let points = 0;
const underWay = new Set<Promise<void>>();

async function getToken(): Promise<string> {
  const body = new URLSearchParams({ grant_type: "password", username: "bench", password: "bench" });
  const answer = await fetch(`${url}/token`, { method: "POST", body });
  return ((await answer.json()) as { access_token: string }).access_token;
}

async function post(elements: readonly Element[]): Promise<void> {
  while (underWay.size >= CALLS_MAX) await Promise.race(underWay);
  const call = send(JSON.stringify(elements)).finally(() => underWay.delete(call));
  underWay.add(call);
}

async function send(body: string): Promise<void> {
  const headers = {
    authorization: `Bearer ${token}`,
    "content-type": "application/json",
    "api-version": "1.7",
  };
  const answer = await fetch(`${url}/push/api/data`, { method: "POST", headers, body });
  if (!answer.ok) throw new Error(`the service answered ${answer.status}`);
  await answer.text();
}

function addRow(groups: Map<string, Element>, row: Row): void {
  const key = `${row.source_serial_number}|${row.mapping_config}`;
  let group = groups.get(key);
  if (group === undefined) {
    group = { sourceSerialNumber: row.source_serial_number, mappingConfig: row.mapping_config, data: [] };
    groups.set(key, group);
  }
  group.data.push({ date: new Date(row.date).toISOString(), value: Number(row.value) });
  points += 1;
}

async function pushWhole(path: string): Promise<void> {
  const groups = new Map<string, Element>();
  for (const row of parseSync<Row>(readFileSync(path), { columns: true })) addRow(groups, row);
  let batch: Element[] = [];
  let room = BATCH_POINTS;
  for (const group of groups.values()) {
    for (let from = 0; from < group.data.length; ) {
      const data = group.data.slice(from, from + room);
      batch.push({ ...group, data });
      from += data.length;
      room -= data.length;
      if (room > 0) continue;
      await post(batch);
      batch = [];
      room = BATCH_POINTS;
    }
  }
  if (batch.length > 0) await post(batch);
}

async function pushStream(path: string): Promise<void> {
  let groups = new Map<string, Element>();
  let rows = 0;
  for await (const row of createReadStream(path).pipe(parse({ columns: true })) as AsyncIterable<Row>) {
    addRow(groups, row);
    rows += 1;
    if (rows % BATCH_POINTS !== 0) continue;
    await post([...groups.values()]);
    groups = new Map();
  }
  if (groups.size > 0) await post([...groups.values()]);
}

const files = readdirSync(folder).sort();
const used = await measure(async () => {
  token = await getToken();
  for (const file of files)
    await (manner === "stream" ? pushStream(join(folder, file)) : pushWhole(join(folder, file)));
  await Promise.all(underWay);
});
const answer: PlainAnswer = { ...used, points, peak: peakMegabytes() };
process.stdout.write(`${JSON.stringify(answer)}\n`);
