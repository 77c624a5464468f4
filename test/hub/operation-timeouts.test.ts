/** A small timeout of one operation costs the other operations of its group nothing but one more transaction. */
import { expect, test } from "vitest";
import { systemClock } from "#core/clock.ts";
import { afterFault, applyOperations, OperationTimeout } from "#hub/push/apply.ts";
import { ReadingColumns } from "#hub/store/columns.ts";
import type { IngestTransaction, QueuedOperation } from "#hub/store/ingest.ts";
import type { VariableFacts } from "#hub/store/records.ts";
import { TargetBytes } from "#hub/store/targets.ts";

const CAPACITY = 10;
const variable: VariableFacts = {
  ...{ id: 1, accountId: 1, sourceId: 1, unitId: 8, isVersioned: false, isCalculated: false, versionsMax: null },
  ...{ sourceZoneId: "UTC", siteZoneId: "UTC" },
};

function operationOf(seq: number, timeoutSec: number, points: number): QueuedOperation {
  const data = Array.from({ length: points }, (_, at) => ({ date: `2026-03-01T00:0${at}:00Z`, value: at }));
  return {
    ...{ seq, accountId: 1, userId: 1, operationId: `${seq}`, timeoutSec, received: points, calculationId: null },
    ...{ acceptedMs: 0, traceLink: null, body: Buffer.from(JSON.stringify([{ variableId: 1, data }])) },
  };
}

/** Each write takes `writeMs`, and the search for a target `findMs`. */
function applied(operations: readonly QueuedOperation[], { writeMs = 0, findMs = 0 }) {
  let nowMs = 0;
  const clock = { ...systemClock, monotonicMs: () => nowMs };
  const transaction: IngestTransaction = {
    outputOf: async () => null,
    async findVariable() {
      nowMs += findMs;
      return variable;
    },
    written: () => new TargetBytes(),
    async write() {
      nowMs += writeMs;
      return { replaced: [], damaged: [] };
    },
  };
  const horizon = { byDefault: 1e13, byAccount: new Map() };
  return applyOperations(transaction, operations, {
    ...{ discardsMax: 50, horizon, clock, columns: new ReadingColumns(CAPACITY) },
  });
}

test("the time in which readings of a group are written counts for none of its operations", async () => {
  const group = [operationOf(1, 60, 8), operationOf(2, 1, 8), operationOf(3, 1, 8)];
  const outcomes = await applied(group, { writeMs: 5_000 });
  expect(outcomes.map(({ stored }) => stored)).toEqual([8, 8, 8]);
  // Alone, all of it is its own.
  await expect(applied([operationOf(2, 1, 8)], { writeMs: 5_000 })).rejects.toThrow(OperationTimeout);
});

test("an operation whose own time is over is taken out, and the others stay in groups, in their order", async () => {
  const group = [1, 2, 3, 4, 5].map((seq) => operationOf(seq, seq === 3 ? 1 : 60, 1));
  const thrown = await applied(group, { findMs: 2_000 }).catch((fault: unknown) => fault);
  const seqs = (fault: unknown, of = group) => afterFault(of, fault).map((part) => part.map(({ seq }) => seq));
  expect(thrown).toBeInstanceOf(OperationTimeout);
  expect(seqs(thrown)).toEqual([[1, 2], [3], [4, 5]]);
  expect(seqs(thrown, group.slice(2))).toEqual([[3], [4, 5]]);
  expect(seqs(new Error("a defect"))).toEqual([[1], [2], [3], [4], [5]]);
});
