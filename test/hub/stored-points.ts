/** All points of a store, whether they are rows or in blocks. */
import { blockOf } from "#hub/store/blocks/blocks.ts";
import { unpacked } from "#hub/store/blocks/codec.ts";

type Row = Readonly<Record<string, unknown>>;

/**
 * In the order of variable and date; the rows have neither version nor tags, where they came from blocks.
 * `originOf`: what a row has in its place, beside its number.
 */
export function allPoints(
  points: readonly Row[],
  blocks: readonly Row[],
  originOf: (id: number) => object = () => ({}),
): readonly Row[] {
  const inBlocks = blocks.map(blockOf).flatMap(({ variableId, data }) => {
    const { atMs, values, origins } = unpacked(data);
    return Array.from(atMs, (ms, index) => ({
      variable_id: variableId,
      at_ms: ms,
      value: values[index],
      version: null,
      tags: null,
      batch_tags: null,
      ...originOf(origins[index] ?? 0),
    }));
  });
  const dateOf = (row: Row) => [Number(row["variable_id"]), Number(row["at_ms"])] as const;
  return [...points.map((row) => ({ ...row })), ...inBlocks].sort((one, other) => {
    const [[id, ms], [otherId, otherMs]] = [dateOf(one), dateOf(other)];
    return id - otherId || ms - otherMs;
  });
}
