/** A calculated variable never depends on itself, also not through others. */
import { HttpProblem } from "#wire/http-problem.ts";
import type { CalculatedEdge } from "../../store/calculated/calculated.ts";
import type { DefinitionFacts } from "../../store/calculated/definitions.ts";

/** Throws a 409 with the path of the cycle that these inputs would close. A new variable closes none. */
export function requireAcyclic({ variableId, edges, names }: DefinitionFacts, inputIds: readonly number[]): void {
  if (variableId === null) return;
  const path = cycleOf(variableId, inputIds, edges);
  if (path === null) return;
  const shown = path.map((id) => (names.has(id) ? `${id} (${names.get(id)})` : String(id))).join(" reads ");
  throw new HttpProblem(
    409,
    "conflict",
    `a calculated variable cannot depend on itself: ${shown}. Change one of these definitions first`,
  );
}

/** From the variable through its inputs back to itself; null: there is no cycle. */
function cycleOf(
  variableId: number,
  inputIds: readonly number[],
  edges: readonly CalculatedEdge[],
): readonly number[] | null {
  const inputsOf = Map.groupBy(edges, ({ calculatedId }) => calculatedId);
  /** By an input, the variable that reads it on the way from `variableId`. */
  const reader = new Map<number, number>(inputIds.map((id) => [id, variableId]));
  const waiting = [...reader.keys()];
  for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) {
    if (id === variableId) return pathTo(variableId, reader);
    for (const { inputId } of inputsOf.get(id) ?? []) {
      if (reader.has(inputId)) continue;
      reader.set(inputId, id);
      waiting.push(inputId);
    }
  }
  return null;
}

function pathTo(variableId: number, reader: ReadonlyMap<number, number>): readonly number[] {
  const path = [variableId];
  for (let at = reader.get(variableId); at !== undefined && at !== variableId; at = reader.get(at)) path.unshift(at);
  return [variableId, ...path];
}
