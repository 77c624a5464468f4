/** A journal in memory that asserts what the ledger asserts: states, and that an operation keeps its bytes. */
import type { DeliveryJournal, WholeRun } from "#gateway/delivery/delivery.ts";
import type { Batch, BatchSlice, BatchState } from "#gateway/model.ts";

const ALLOWED: Readonly<Record<BatchState, readonly BatchState[]>> = {
  ready: ["sending"],
  sending: ["sending", "ready", "accepted", "rejected"],
  accepted: [],
  rejected: [],
  split: [],
};

export class MemoryJournal implements DeliveryJournal {
  /** `operationId from>to`, in order. */
  readonly log: string[] = [];
  readonly #batches = new Map<string, Batch>();

  open(runId: string, slices: readonly BatchSlice[], repeats?: string): readonly Batch[] {
    return slices.map((slice) => {
      const operationId = `${runId}-${slice.sequence}`;
      if (this.#batches.has(operationId)) throw new Error(`${operationId} exists`);
      const batch: Batch = {
        ...slice,
        runId,
        operationId,
        state: "ready",
        idempotencyKey: operationId,
        repeats: repeats ?? null,
        attempts: 0,
        answer: null,
        acceptedAt: null,
        outcome: null,
      };
      this.#batches.set(operationId, batch);
      return batch;
    });
  }

  async batches(runId: string): Promise<readonly Batch[]> {
    const path = (batch: Batch) => batch.sequence.split(".").map(Number);
    return [...this.#batches.values()]
      .filter((batch) => batch.runId === runId)
      .sort((one, other) => comparePaths(path(one), path(other)));
  }

  async advanceBatch(
    operationId: string,
    from: BatchState,
    to: BatchState,
    change: { readonly answer?: string; readonly attempted?: boolean } = {},
  ): Promise<Batch> {
    const batch = this.batch(operationId);
    if (batch.state !== from || !ALLOWED[from].includes(to))
      throw new Error(`${operationId} is ${batch.state}: no ${from}>${to}`);
    const next: Batch = {
      ...batch,
      state: to,
      attempts: batch.attempts + (change.attempted === true ? 1 : 0),
      answer: change.answer ?? batch.answer,
      acceptedAt: to === "accepted" ? new Date().toISOString() : batch.acceptedAt,
    };
    this.#batches.set(operationId, next);
    this.log.push(`${operationId} ${from}>${to}`);
    return next;
  }

  /** Keeps no runs, so that none is ever accepted as a whole. */
  async acceptBatch(operationId: string, answer: string, _whole: WholeRun, repeats?: string): Promise<null> {
    await this.advanceBatch(operationId, "sending", "accepted", { answer });
    this.set(operationId, { repeats: repeats ?? null });
    return null;
  }

  async renewKey(operationId: string, answer: string): Promise<Batch> {
    const batch = await this.advanceBatch(operationId, "sending", "ready", { answer });
    this.set(operationId, { idempotencyKey: `${batch.idempotencyKey} again`, repeats: null });
    return this.batch(operationId);
  }

  async splitBatch(operationId: string, children: readonly BatchSlice[], answer: string, repeats?: string) {
    const batch = this.batch(operationId);
    if (batch.state !== "sending") throw new Error(`${operationId} is ${batch.state}: no split`);
    const points = children.reduce((sum, child) => sum + child.points, 0);
    if (points !== batch.points) throw new Error(`${operationId} had ${batch.points} points, now ${points}`);
    this.#batches.set(operationId, { ...batch, state: "split", answer });
    this.log.push(`${operationId} sending>split`);
    return this.open(batch.runId, children, repeats);
  }

  batch(operationId: string): Batch {
    const batch = this.#batches.get(operationId);
    if (batch === undefined) throw new Error(`no ${operationId}`);
    return batch;
  }

  set(operationId: string, change: Partial<Batch>): void {
    this.#batches.set(operationId, { ...this.batch(operationId), ...change });
  }
}

function comparePaths(one: readonly number[], other: readonly number[]): number {
  for (let at = 0; at < Math.max(one.length, other.length); at += 1) {
    const difference = (one[at] ?? -1) - (other[at] ?? -1);
    if (difference !== 0) return difference;
  }
  return 0;
}
