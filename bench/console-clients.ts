/** What clients of the live events cost a gateway that delivers, by turns with the same work without clients. */
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { startChild } from "./child.ts";
import { consoleSections } from "./console-browser.ts";
import { linkFiles, print, row, writeFiles } from "./delivery-field.ts";
import { type GatewayAnswer, runGateway } from "./delivery-gateway.ts";
import type { SinkAnswer } from "./delivery-sink.ts";
import { writeMeterDay } from "./mapping-data.ts";
import { medianOf } from "./median.ts";

const CLIENTS = 3;
const FILES = 2_000;
/** All files are delivered by then. */
const STOP_MS = 15_000;

export async function benchConsoleClients(folder: string, ledger: string, rounds: number): Promise<void> {
  const sink = await startChild<SinkAnswer>(join(import.meta.dirname, "delivery-sink.ts"), []);
  const files = join(folder, "files");
  writeFiles(files, FILES, writeMeterDay);
  const seen: Record<number, GatewayAnswer[]> = { 0: [], [CLIENTS]: [] };
  try {
    print(`${FILES} files of 96 rows delivered, with and without ${CLIENTS} clients of the events, by turns; seconds`);
    print(row("", "wall", "CPU", "mappers"));
    for (let round = 0; round < rounds; round += 1)
      for (const clients of round % 2 === 0 ? [0, CLIENTS] : [CLIENTS, 0])
        seen[clients]?.push(
          await deliver(mkdtempSync(join(folder, "round-")), { files, ledger, clients }, sink.answer),
        );
  } finally {
    await sink.stop();
  }
  const median = (clients: number, of: (one: GatewayAnswer) => number) => medianOf((seen[clients] ?? []).map(of));
  const ratio = (of: (one: GatewayAnswer) => number) => (median(CLIENTS, of) / median(0, of)).toFixed(2);
  print(
    `with ${CLIENTS} clients: ${ratio(({ wall }) => wall)} times the time, and ` +
      `${ratio(({ cpu }) => cpu)} times the CPU time of the gateway`,
  );
}

interface Work {
  readonly files: string;
  readonly ledger: string;
  readonly clients: number;
}

async function deliver(folder: string, { files, ledger, clients }: Work, { url }: SinkAnswer): Promise<GatewayAnswer> {
  linkFiles(files, join(folder, "drop"));
  const endpoint = join(folder, "state/ledger.sqlite.daemon");
  const readers = await startChild(join(import.meta.dirname, "console-events.ts"), [endpoint, String(clients)]);
  try {
    const sections = consoleSections(folder);
    const seen = await runGateway({ folder, url: `${url}/uncounted`, ledger, sections, stopAfterMs: STOP_MS });
    print(row(`${clients} clients`, seen.wall, seen.cpu, seen.workersCpu));
    return seen;
  } finally {
    await readers.stop();
  }
}
