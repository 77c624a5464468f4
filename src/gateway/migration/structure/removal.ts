/**
 * Removes structure that a migration created and that is unused: variables without points, then sources without
 * variables, then sites without sources. The service removes a thing with everything below it, so that each thing is
 * checked again right before.
 */

import { RejectedError, wordsOf } from "#core/errors.ts";
import { grouped, noun } from "#core/text.ts";
import { eachItem, type Page } from "#wire/client/index.ts";
import type { Removal, RemovalQuery } from "#wire/data.ts";
import type { SitesQuery, Source, SourcesQuery, Variable, VariablesQuery } from "#wire/structure.ts";
import type { Entity } from "../../provisioning/wanted.ts";
import type { RecordedCreation } from "./record.ts";

type Named = Pick<Source, "id" | "name">;
type Listed<Item> = Promise<Page<Item>>;

/** Calls to the service; errors are those of its client. */
export interface StructureRemover {
  getSites(query: SitesQuery, signal: AbortSignal): Listed<{ readonly id: number }>;
  getSources(query: SourcesQuery, signal: AbortSignal): Listed<Source>;
  getVariables(query: VariablesQuery, signal: AbortSignal): Listed<Variable>;
  deleteData(query: RemovalQuery, signal: AbortSignal): Promise<Removal>;
  /** False when it no longer existed. */
  deleteVariable(sourceId: number, id: number, signal: AbortSignal): Promise<boolean>;
  deleteSource(id: number, signal: AbortSignal): Promise<boolean>;
  deleteSite(id: number, signal: AbortSignal): Promise<boolean>;
}

/** `goes`: it is removed; `gone`: it no longer exists; `stays`: it is used, and by what. */
export interface Verdict {
  readonly nth: number;
  readonly entity: Entity;
  readonly id: number;
  readonly name: string;
  readonly target: string;
  readonly verdict: "goes" | "gone" | "stays";
  readonly why: string | null;
}

const ORDER: readonly Entity[] = ["variable", "source", "site"];
const NAMED_MAX = 3;

export class StructureSurvey {
  readonly #remover: StructureRemover;
  /** Points by variable that will have been removed by then. */
  readonly #leaving: ReadonlyMap<number, number>;
  /** By `entity id`: things that are or will be removed. */
  readonly #going = new Set<string>();

  constructor(remover: StructureRemover, leaving: ReadonlyMap<number, number> = new Map()) {
    this.#remover = remover;
    this.#leaving = leaving;
  }

  /** Variables first, sites last. */
  async look(created: readonly RecordedCreation[], signal: AbortSignal): Promise<readonly Verdict[]> {
    const verdicts: Verdict[] = [];
    for (const entity of ORDER)
      for (const one of created) {
        if (one.entity !== entity || one.state !== "created" || one.id === null) continue;
        verdicts.push(await this.#judge(one, one.id, signal));
      }
    return verdicts;
  }

  /** Checks again, and removes it when it is still unused. */
  async remove(one: RecordedCreation, signal: AbortSignal): Promise<Verdict> {
    const { id } = one;
    if (id === null) return verdictOf(one, 0, "gone");
    this.#going.delete(`${one.entity} ${id}`);
    const verdict = await this.#judge(one, id, signal);
    if (verdict.verdict !== "goes") return verdict;
    try {
      const isGone = !(await this.#delete(one, id, signal));
      return isGone ? { ...verdict, verdict: "gone" } : verdict;
    } catch (thrown) {
      if (!(thrown instanceof RejectedError)) throw thrown;
      this.#going.delete(`${one.entity} ${id}`);
      return verdictOf(one, id, "stays", wordsOf(thrown));
    }
  }

  #delete({ entity, body }: RecordedCreation, id: number, signal: AbortSignal): Promise<boolean> {
    if (entity === "variable") return this.#remover.deleteVariable(Number(body["sourceId"]), id, signal);
    return entity === "source" ? this.#remover.deleteSource(id, signal) : this.#remover.deleteSite(id, signal);
  }

  async #judge(one: RecordedCreation, id: number, signal: AbortSignal): Promise<Verdict> {
    const used = await this.#usedBy(one.entity, id, signal);
    if (used !== null && used !== GONE) return verdictOf(one, id, "stays", used);
    this.#going.add(`${one.entity} ${id}`);
    return verdictOf(one, id, used === GONE ? "gone" : "goes");
  }

  /** The user of the thing, in words; null: unused. */
  async #usedBy(entity: Entity, id: number, signal: AbortSignal): Promise<string | typeof GONE | null> {
    const remover = this.#remover;
    if (entity === "variable") {
      if ((await remover.getVariables({ Ids: [id] }, signal)).items.length === 0) return GONE;
      const { points } = await remover.deleteData({ VariableIds: [id], WhatIf: true }, signal);
      const others = points - (this.#leaving.get(id) ?? 0);
      return others > 0 ? `it holds ${grouped(others)} ${noun(others, "point")}` : null;
    }
    if (entity === "source") {
      if ((await remover.getSources({ Ids: [id] }, signal)).items.length === 0) return GONE;
      return await this.#othersOf("variable", (paging) => remover.getVariables({ SourceIds: [id], ...paging }, signal));
    }
    if ((await remover.getSites({ Ids: [id] }, signal)).items.length === 0) return GONE;
    return await this.#othersOf("source", (paging) => remover.getSources({ SiteIds: [id], ...paging }, signal));
  }

  /** The dependants that stay, in words; null: none. */
  async #othersOf(what: "variable" | "source", page: Parameters<typeof eachItem<Named>>[0]): Promise<string | null> {
    const items: Named[] = [];
    await eachItem(page, (item) => void (this.#going.has(`${what} ${item.id}`) || items.push(item)));
    if (items.length === 0) return null;
    const named = items.slice(0, NAMED_MAX).map(({ name, id }) => `${name} (id ${id})`);
    const more = items.length > NAMED_MAX ? ` and ${items.length - NAMED_MAX} more` : "";
    return `it has the ${what}${items.length === 1 ? "" : "s"} ${named.join(", ")}${more}`;
  }
}

const GONE = Symbol("gone");

function verdictOf(
  { nth, entity, name, target }: RecordedCreation,
  id: number,
  verdict: Verdict["verdict"],
  why: string | null = null,
): Verdict {
  return { nth, entity, id, name, target, verdict, why };
}
