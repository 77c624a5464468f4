/** A run with a real segment file, a scripted service, and the delivery between them. */
import { createHash } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Clock, systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import type { Delivery } from "#gateway/delivery/delivery.ts";
import { type PushOptions, pushOptions } from "#gateway/delivery/options.ts";
import { createDelivery } from "#gateway/delivery/service-delivery.ts";
import type { BatchSlice, PushElement, Run } from "#gateway/model.ts";
import { segmentChanges } from "#gateway/spool/segment-changes.ts";
import { MemoryJournal } from "./memory-journal.ts";
import { ScriptedService } from "./scripted-service.ts";

export interface Setup {
  readonly service: ScriptedService;
  readonly journal: MemoryJournal;
  readonly delivery: Delivery;
  /** Writes batches into a new segment and opens them as a run. */
  run(id: string, batches: readonly (readonly PushElement[])[]): Promise<{ run: Run; segmentPath: string }>;
  /** The daemon after a restart: another delivery over the same journal and segment. */
  restart(): Promise<Delivery>;
  close(): Promise<void>;
}

const QUICK = {
  retry: { initial: "20ms", max: "200ms", quickWait: "2s", refused: "1m" },
  timeouts: { connect: "2s", headers: "5s", body: "5s", total: "5s" },
};

/** The section `push` as the configuration has it. */
export interface PushChange {
  readonly concurrency?: number;
  readonly operationTimeout?: string;
  readonly retry?: Record<string, unknown>;
  readonly confirm?: Record<string, unknown>;
  readonly timeouts?: Record<string, unknown>;
}

export async function setUp(
  push: PushChange = {},
  webhookUrl: string | null = null,
  { idempotency = true, clock = systemClock }: { readonly idempotency?: boolean; readonly clock?: Clock } = {},
): Promise<Setup> {
  const service = await new ScriptedService().start();
  service.idempotency = idempotency;
  const directory = await mkdtemp(join(tmpdir(), "headgate-"));
  const journal = new MemoryJournal();
  const options: PushOptions = pushOptions.parse({
    ...QUICK,
    ...push,
    retry: { ...QUICK.retry, ...push.retry },
    timeouts: { ...QUICK.timeouts, ...push.timeouts },
  });
  const open: Delivery[] = [];
  const create = () => {
    const webhook = webhookUrl === null ? null : { url: webhookUrl };
    const delivery = createDelivery(service.options, options, {
      journal,
      segments: segmentChanges,
      log: silentLog,
      webhook,
      clock,
    });
    open.push(delivery);
    return delivery;
  };
  return {
    service,
    journal,
    delivery: create(),
    async run(id, batches) {
      const segmentPath = join(directory, `${id}.segment`);
      journal.open(id, await writeSegment(segmentPath, batches));
      return { run: { id } as Run, segmentPath };
    },
    async restart() {
      await open.at(-1)?.close();
      return create();
    },
    async close() {
      for (const delivery of open) await delivery.close();
      await service.stop();
      await rm(directory, { recursive: true });
    },
  };
}

export async function writeSegment(path: string, batches: readonly (readonly PushElement[])[]): Promise<BatchSlice[]> {
  const parts = batches.map((elements) => Buffer.from(JSON.stringify(elements)));
  await writeFile(path, Buffer.concat(parts));
  let offset = 0;
  return parts.map((bytes, index) => {
    const digest = createHash("sha256").update(bytes).digest("hex");
    const points = (batches[index] ?? []).reduce((sum, element) => sum + element.data.length, 0);
    const slice = { sequence: String(index + 1), offset, length: bytes.length, points, digest };
    offset += bytes.length;
    return slice;
  });
}

/** An element with one reading for each hour from the start of 2026. */
export function element(serial: string, count: number, first = 0): PushElement {
  const data = Array.from({ length: count }, (_, index) => ({
    date: new Date(Date.UTC(2026, 0, 1) + (first + index) * 3_600_000).toISOString(),
    value: first + index + 0.5,
  }));
  return { sourceSerialNumber: serial, mappingConfig: "kWh", data };
}

export const never = new AbortController().signal;
