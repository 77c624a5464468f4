/** Events about changes of structure: one for each thing, in the transaction of the request, as its last step. */
import { systemClock } from "#core/clock.ts";
import type { EventSubject } from "#wire/index.ts";
import type { Removal } from "../calculated/readers.ts";
import { type Row, row, type Steps } from "../database.ts";
import type { StoredSource, StoredVariable, StructureEntity } from "../records.ts";
import { number, text } from "../structure-rows.ts";
import { addEvents } from "./events.ts";

export type StructureChange = "created" | "changed" | "removed";

export interface ChangedStructure {
  readonly kind: EventSubject;
  readonly id: number;
  readonly name: string | null | undefined;
  readonly siteId?: number | undefined;
  readonly sourceId?: number | undefined;
  readonly variableId?: number | undefined;
  readonly facts?: Readonly<Record<string, unknown>>;
  /** Now when absent. */
  readonly atMs?: number;
}

export function aboutSource({ id, name, siteId }: StoredSource): ChangedStructure {
  return { kind: "source", id, name, siteId, sourceId: id };
}

export function aboutVariable({
  id,
  name,
  sourceId,
}: Pick<StoredVariable, "id" | "name" | "sourceId">): ChangedStructure {
  return { kind: "variable", id, name, sourceId, variableId: id };
}

/** For use inside a write, as its last step. */
export function* addStructureEvent(accountId: number, state: StructureChange, changed: ChangedStructure): Steps<void> {
  const { kind, id, name, siteId, sourceId, variableId, facts = {}, atMs } = changed;
  const subject = { kind, id, name: name ?? null };
  // A source or variable is of its site, also for those who select events by sites.
  const ofSource = sourceId !== undefined && siteId === undefined ? yield* siteOfSource(sourceId) : null;
  yield* addEvents([
    {
      ...{ accountId, type: "structure.changed", subject, state, facts },
      ...{ siteId: siteId ?? ofSource, sourceId: sourceId ?? null, variableId: variableId ?? null },
      atMs: atMs ?? systemClock.now().epochMilliseconds,
    },
  ]);
}

/** The same for a change of fields; none where all of them stayed. */
export function* addChangeEvent(
  accountId: number,
  before: object,
  after: object,
  changed: ChangedStructure,
): Steps<void> {
  const fields = changedFields(before, after);
  if (fields.length > 0)
    yield* addStructureEvent(accountId, "changed", { ...changed, facts: { ...changed.facts, fields } });
}

/** Variables and sources that are removed with an entity, itself included. */
export interface Below {
  readonly variables: readonly Row[];
  readonly sources: readonly Row[];
}

/**
 * An event for each thing that is removed with an entity, so that those who select events by it receive one; `found` is
 * the row of the entity, which itself has none.
 */
export function* addBelowEvents(accountId: number, kind: StructureEntity, found: Row, below: Below): Steps<void> {
  const atMs = systemClock.now().epochMilliseconds;
  const facts = { with: { kind, id: String(found["id"]), name: text(found["name"]) } };
  const eventOf = (one: Row, of: "variable" | "source") => {
    const own = Number(one["id"]);
    return {
      ...({ accountId, type: "structure.changed", state: "removed", atMs, facts } as const),
      subject: { kind: of, id: own, name: text(one["name"]) },
      siteId: number(one["site_id"]),
      ...(of === "variable" ? { sourceId: number(one["source_id"]), variableId: own } : { sourceId: own }),
    };
  };
  const all = [
    ...below.variables.map((one) => eventOf(one, "variable")),
    ...below.sources.map((one) => eventOf(one, "source")),
  ];
  yield* addEvents(all.filter(({ subject }) => subject.kind !== kind));
}

/** The event of the entity itself is the last one, and counts what went with it. */
export function* addRemovalEvent(
  accountId: number,
  kind: StructureEntity,
  found: Row,
  { sources, variables, points }: Extract<Removal, { kind: "removed" }>,
): Steps<void> {
  const id = Number(found["id"]);
  const siteId = kind === "site" ? id : (number(found["site_id"]) ?? undefined);
  const sourceId = kind === "source" ? id : (number(found["source_id"]) ?? undefined);
  yield* addStructureEvent(accountId, "removed", {
    ...{ kind, id, name: text(found["name"]), siteId, sourceId, facts: { sources, variables, points } },
    ...(kind === "variable" ? { variableId: id } : {}),
  });
}

function changedFields(before: object, after: object): string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].filter(
    (name) => JSON.stringify(Reflect.get(before, name) ?? null) !== JSON.stringify(Reflect.get(after, name) ?? null),
  );
}

function* siteOfSource(sourceId: number): Steps<number | null> {
  return number((yield* row("SELECT site_id FROM source WHERE id = ?", sourceId))?.["site_id"]);
}
