/** The definition in a request that creates or changes a variable. */
import { isDeepStrictEqual } from "node:util";
import { HttpProblem } from "#wire/http-problem.ts";
import type { Calculated } from "#wire/index.ts";
import type { HubContext } from "../../context.ts";
import { type JudgeDefinition, withoutPlaces } from "../../store/calculated/definitions.ts";
import { requireReadable } from "./expressions.ts";
import { judgeDefinition } from "./judge.ts";

export class DefinitionChange {
  readonly #context: HubContext;
  readonly #accountId: number;
  /** The definition whose expressions were checked. */
  #checked: Calculated | null = null;

  constructor(context: HubContext, accountId: number) {
    this.#context = context;
    this.#accountId = accountId;
  }

  /** Checks aliases and expressions, which cannot be done inside the transaction. `before`: the definition so far. */
  async check(wanted: Calculated | undefined, before: Calculated | null): Promise<void> {
    if (wanted === undefined || isDeepStrictEqual(withoutPlaces(wanted), before)) return;
    await requireReadable(this.#context.store, this.#accountId, wanted);
    this.#checked = wanted;
  }

  /** Inside the transaction. */
  readonly judge: JudgeDefinition = (facts, wanted) => {
    const plan = judgeDefinition(facts, wanted, this.#context.options.calculated.engine);
    if (!isDeepStrictEqual(wanted, this.#checked))
      throw new HttpProblem(409, "conflict", "the definition was changed by another request meanwhile: send it again");
    return plan;
  };
}
