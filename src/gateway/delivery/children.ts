/**
 * The children of a split batch: made from its elements, and made identically again after a lost segment was mapped
 * again.
 */
import { InvariantError } from "#core/errors.ts";
import { countReadings } from "#wire/push-body.ts";
import type { Batch, BatchSlice, PushElement } from "../model.ts";
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

// Splits the elements of a batch in two, down to one reading. Values and order do not change.

/** Elements of a batch that this gateway wrote itself. */
export function parseElements(bytes: Buffer): readonly PushElement[] {
  const value: unknown = JSON.parse(bytes.toString("utf8"));
  if (Array.isArray(value) && value.every(isElement)) return value;
  throw new InvariantError("HG-BUG-001", {
    operation: "parse batch",
    subject: "segment",
    message: "a batch is not an array of push elements",
  });
}

function isElement(value: unknown): value is PushElement {
  return typeof value === "object" && value !== null && "data" in value && Array.isArray(value.data);
}

/** Null when there is only one element with one reading (or none). Neither half is empty. */
export function halve(
  elements: readonly PushElement[],
): readonly [readonly PushElement[], readonly PushElement[]] | null {
  const [first] = elements;
  if (first === undefined) return null;
  if (elements.length > 1) {
    const cut = middle(elements);
    return [elements.slice(0, cut), elements.slice(cut)];
  }
  if (first.data.length < 2) return null;
  const cut = first.data.length >> 1;
  return [[{ ...first, data: first.data.slice(0, cut) }], [{ ...first, data: first.data.slice(cut) }]];
}

/** The element boundary nearest to half of the readings. */
function middle(elements: readonly PushElement[]): number {
  const half = countReadings(elements) / 2;
  let readings = 0;
  let cut = 0;
  while (cut < elements.length - 1 && readings < half) {
    readings += elements[cut]?.data.length ?? 0;
    cut += 1;
  }
  return Math.max(1, cut);
}
