/**
 * What somebody writes in five minutes and throws away: lines and cells split by hand, no quotes, grouped, posted by
 * `fetch` one batch after the other: `script-hand.ts long|wide URL FILE`. Nothing is durable, nothing is sent again.
 */
import { createReadStream } from "node:fs";

interface Element {
  readonly sourceSerialNumber: string;
  readonly mappingConfig: string;
  readonly data: { readonly date: string; readonly value: number }[];
}

const BATCH_POINTS = 10_000;
const CHUNK_BYTES = 256 * 1024;

const [shape = "long", url = "", path = ""] = process.argv.slice(2);
let groups = new Map<string, Element>();
let points = 0;
let names: readonly string[] | undefined;

async function post(): Promise<void> {
  const answer = await fetch(`${url}/push/api/data`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify([...groups.values()]),
  });
  if (!answer.ok) throw new Error(`the service answered ${answer.status}`);
  await answer.text();
  groups = new Map();
  points = 0;
}

function add(serial: string, config: string, date: string, value: string): void {
  const key = `${serial}|${config}`;
  let group = groups.get(key);
  if (group === undefined) {
    group = { sourceSerialNumber: serial, mappingConfig: config, data: [] };
    groups.set(key, group);
  }
  group.data.push({ date: `${date}Z`, value: Number(value) });
  points += 1;
}

function takeLine(line: string): void {
  const cells = line.split(",");
  if (names === undefined) {
    names = cells;
    return;
  }
  if (shape === "wide") {
    for (let at = 1; at < cells.length; at += 1) add(names[at] ?? "", "kWh", cells[0] ?? "", cells[at] ?? "");
    return;
  }
  const [serial = "", config = "", date = "", value = ""] = cells;
  add(serial, config, date, value);
}

let spare = "";
for await (const chunk of createReadStream(path, { encoding: "utf8", highWaterMark: CHUNK_BYTES })) {
  const lines = `${spare}${chunk as string}`.split("\n");
  spare = lines.pop() ?? "";
  for (const line of lines) {
    takeLine(line);
    if (points >= BATCH_POINTS) await post();
  }
}
if (spare !== "") takeLine(spare);
if (points > 0) await post();
