/** Lists the differences of two JSON values, by path. */
import jsonPatch from "fast-json-patch";

const SHOWN_MAX = 20;
const VALUE_MAX = 120;

/**
 * A line for each difference, such as `/readings/3/value: expected 12.5, found 13`; the first of many, and the number
 * of the others.
 */
export function differences(expected: unknown, actual: unknown): readonly string[] {
  const whole = [`expected ${shown(expected)}`, `found    ${shown(actual)}`];
  if (!isContainer(expected) || !isContainer(actual) || Array.isArray(expected) !== Array.isArray(actual)) return whole;
  const places = jsonPatch.compare(expected, actual).toReversed();
  const lines = places.slice(0, SHOWN_MAX).map((place) => {
    const before = place.op === "add" ? undefined : jsonPatch.getValueByPointer(expected, place.path);
    const after = "value" in place ? place.value : undefined;
    return `${place.path}: expected ${shown(before)}, found ${shown(after)}`;
  });
  const more = places.length - lines.length;
  return more > 0 ? [...lines, `… and ${more} more`] : lines;
}

function isContainer(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > VALUE_MAX ? `${text.slice(0, VALUE_MAX)}…` : text;
}
