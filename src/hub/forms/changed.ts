/** Values of forms in requests that create or change a site or a source. */
import type { FastifyReply, FastifyRequest } from "fastify";
import type { HubContext } from "../context.ts";
import { callerOf } from "../http/access.ts";
import { warn } from "../http/warnings.ts";
import type { ChangedValues, HeldForms, JudgeValues } from "../store/form-values.ts";
import type { ValuesEntity } from "../store/records.ts";
import type { HubStore } from "../store/store.ts";
import type { Fields } from "./names.ts";
import { withSlices } from "./shown.ts";
import { judgeValues, valuesAsOf } from "./values.ts";

interface Body {
  readonly clientData?: Record<string, unknown> | undefined;
}

export class ChangedForms {
  readonly #store: HubStore;
  readonly #request: FastifyRequest;
  readonly #reply: FastifyReply;
  /** The moment of the request. */
  readonly #atMs: number;
  #unknown: readonly string[] = [];

  constructor({ store, clock }: HubContext, request: FastifyRequest, reply: FastifyReply) {
    this.#store = store;
    this.#request = request;
    this.#reply = reply;
    this.#atMs = clock.now().epochMilliseconds;
  }

  /** Undefined: the body has no values. */
  ofNew({ clientData }: Body): JudgeValues | undefined {
    if (clientData === undefined) return undefined;
    return (held) => this.#judge(held, clientData, null);
  }

  /** `change`: from the entity with all values that it has now. */
  of<Current extends { readonly clientData: Fields | null }, Changed extends Body>(
    current: Current,
    held: HeldForms,
    change: (current: Current) => Changed,
  ): ChangedValues<Changed> {
    const before = current.clientData;
    const now = valuesAsOf(held, before, this.#atMs);
    const body = change({ ...current, clientData: before === null && Object.keys(now).length === 0 ? null : now });
    const values = this.#judge(held, body.clientData, before);
    return { body: { ...body, clientData: values.clientData }, values };
  }

  /** The answer, with a warning of forms that the account does not have. */
  async shown<Item extends { readonly id: number; readonly clientData: Fields | null }>(
    entity: ValuesEntity,
    item: Item,
  ): Promise<Item> {
    this.warn();
    const { accountId } = callerOf(this.#request);
    const [shown = item] = await withSlices(this.#store, accountId, entity, [item], { atMs: this.#atMs, all: false });
    return shown;
  }

  warn(): void {
    const names = this.#unknown.map((name) => name.slice(0, 60)).slice(0, 10);
    if (names.length > 0)
      warn(this.#reply, `clientData: no form is named ${names.join(", ")}; its values are kept as they are`);
  }

  #judge(held: HeldForms, values: Fields | undefined, before: Fields | null) {
    const absentEnds = this.#request.method === "PATCH";
    const judged = judgeValues(held, { values, before, atMs: this.#atMs, absentEnds });
    // An account without forms keeps its values as it likes.
    this.#unknown = held.forms.length === 0 ? [] : judged.unknown;
    return judged;
  }
}
