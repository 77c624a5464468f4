/** Keeps the gateway's triggers of each account as new as those that the hub has saved. */
import type { HubStore } from "#hub/store/store.ts";

type Triggers = Pick<HubStore["fileTriggers"], "version" | "list">;

export class TriggerVersions {
  readonly #triggers: Triggers;
  readonly #read: (accountId: number) => Promise<void>;
  /** Versions at which the triggers of accounts were read last. */
  readonly #known = new Map<number, number>();

  /** `read` has the gateway read the triggers of an account, and throws when it cannot. */
  constructor(triggers: Triggers, read: (accountId: number) => Promise<void>) {
    this.#triggers = triggers;
    this.#read = read;
  }

  /** Resolves when every trigger that was saved before the call is in force. */
  async inForce(accountId: number): Promise<void> {
    const version = await this.#triggers.version(accountId);
    if (this.#known.get(accountId) === version) return;
    await this.#read(accountId);
    this.#known.set(accountId, version);
  }

  /** Null when the account has no such trigger, and never had. */
  async tokenOf(accountId: number, triggerId: number): Promise<string | null> {
    const { rows } = await this.#triggers.list(accountId, { ids: [triggerId] }, { offset: 0, limit: 1 });
    return rows[0]?.token ?? null;
  }
}
