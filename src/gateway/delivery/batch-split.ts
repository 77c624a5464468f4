/** Splits the elements of a batch in two, down to one reading. Values and order do not change. */

import { InvariantError } from "#core/errors.ts";
import { countReadings } from "#wire/push-body.ts";
import type { PushElement } from "../model.ts";

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
