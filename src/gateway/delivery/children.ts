/**
 * The children of a split batch: made from its elements, and made identically again after a lost segment was mapped
 * again.
 */

import { InvariantError } from "#core/errors.ts";
import { countReadings } from "#wire/push-body.ts";
import type { Batch, BatchSlice } from "../model.ts";
import { halve, parseElements } from "./batch-split.ts";
import type { SegmentChanges } from "./delivery.ts";
import { appendSlices, isIntact, readSlice, rewriteSlice } from "./slices.ts";

interface Child {
  readonly sequence: string;
  readonly points: number;
  readonly bytes: Buffer;
}

/** Two children, durable at the end of the segment; null when there is nothing left to split. */
export async function appendChildren(
  segmentPath: string,
  parent: BatchSlice,
  segments: SegmentChanges,
): Promise<readonly BatchSlice[] | null> {
  const children = makeChildren(segmentPath, parent);
  return children === null ? null : await appendSlices(segmentPath, children, segments);
}

/**
 * A segment that was mapped again holds the batches as mapped, without the children that splits had appended. The
 * children are restored at their recorded places before anything else is appended.
 */
export async function restoreChildren(
  segmentPath: string,
  batches: readonly Batch[],
  segments: SegmentChanges,
): Promise<void> {
  const parents = batches.filter(({ state }) => state === "split");
  if (parents.length === 0) return;
  const bySequence = new Map(batches.map((batch) => [batch.sequence, batch]));
  for (const parent of parents) {
    const recorded = [1, 2].map((number) => bySequence.get(`${parent.sequence}.${number}`));
    const intact = await Promise.all(recorded.map((child) => child === undefined || isIntact(segmentPath, child)));
    if (intact.every(Boolean)) continue;
    for (const made of makeChildren(segmentPath, parent) ?? []) {
      const child = bySequence.get(made.sequence);
      if (child === undefined)
        throw new InvariantError("HG-BUG-001", {
          operation: "restore batch",
          subject: made.sequence,
          message: `batch ${parent.operationId} was split, but has no child ${made.sequence}`,
        });
      await rewriteSlice(segmentPath, child, made.bytes, segments);
    }
  }
}

/** The result depends on the parent alone. */
function makeChildren(segmentPath: string, parent: BatchSlice): readonly Child[] | null {
  const halves = halve(parseElements(readSlice(segmentPath, parent)));
  if (halves === null) return null;
  return halves.map((elements, index) => ({
    sequence: `${parent.sequence}.${index + 1}`,
    points: countReadings(elements),
    bytes: Buffer.from(JSON.stringify(elements), "utf8"),
  }));
}
