/**
 * Sends what changes of alarms have written: to receivers of webhooks, and as pushes of states into variables. Each
 * account and each of its hosts has a share of the deliveries, so that unreachable receivers delay only their own, and
 * what is due is taken by turns of the accounts.
 */
import { createHash } from "node:crypto";
import type { Clock } from "#core/clock.ts";
import type { Logger } from "#core/log.ts";
import { accountWebhookKey } from "#wire/index.ts";
import { growingWait } from "../deliveries/growing-wait.ts";
import { createSender, type Sender } from "../deliveries/sender.ts";
import { createShares, type Shares } from "../deliveries/shares.ts";
import type { HubOptions } from "../options.ts";
import { compressed } from "../push/body-compression.ts";
import type { DueDispatch } from "../store/alarms/dispatches.ts";
import type { HubStore } from "../store/store.ts";

interface DispatchParts {
  readonly store: HubStore;
  readonly options: HubOptions["webhook"];
  readonly log: Logger;
  readonly clock: Clock;
  /** Called when an operation waits. */
  onPushed(): void;
}

/** One that a hub took and did not finish, since it was killed, is taken again so long after the end of its attempt. */
const LEASE_MS = 30_000;
const IDLE_MS = 60_000;
/** A push by the hub itself; real users begin at 1. */
const HUB_USER = 0;
const TIMEOUT_SEC = 600;

export class AlarmDispatch {
  readonly #parts: DispatchParts;
  readonly #sender: Sender;
  readonly #closing = new AbortController();
  readonly #shares: Shares<DueDispatch>;
  readonly #loop: Promise<void>;
  #nap = new AbortController();
  #isWoken = false;

  constructor(parts: DispatchParts) {
    this.#parts = parts;
    this.#sender = createSender(parts.options, { clock: parts.clock });
    this.#shares = createShares(parts.options.concurrency, () => this.wake());
    this.#loop = this.#run();
  }

  /** Checks for what is due. */
  wake(): void {
    this.#isWoken = true;
    this.#nap.abort();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#sender.close();
    await this.#loop;
  }

  get #nowMs(): number {
    return this.#parts.clock.now().epochMilliseconds;
  }

  /** Webhooks without a slot. */
  get #occupied() {
    return { ...this.#shares.busy(), isFull: this.#shares.left === 0 };
  }

  async #run(): Promise<void> {
    const { store, options, log, clock } = this.#parts;
    const { dispatches } = store.alarms;
    const closing = this.#closing.signal;
    let account = 0;
    while (!closing.aborted) {
      this.#isWoken = false;
      try {
        const untilMs = this.#nowMs + options.timeout + LEASE_MS;
        const due = await dispatches.take(account, this.#nowMs, untilMs, this.#occupied);
        account = due?.accountId ?? 0;
        if (due === null) await this.#rest();
        else if (due.kind === "variable") await this.#recorded(() => this.#push(due));
        else this.#shares.begin(due, () => this.#recorded(() => this.#post(due)));
      } catch (thrown) {
        log.error({ err: thrown }, "notices of alarms could not be sent; this is tried again");
        await clock.sleep(options.backoff, closing);
      }
    }
    await this.#shares.ended();
  }

  async #rest(): Promise<void> {
    const next = await this.#parts.store.alarms.dispatches.nextMs(this.#occupied);
    const wait = next === null ? IDLE_MS : Math.min(Math.max(1, next - this.#nowMs), IDLE_MS);
    this.#nap = new AbortController();
    if (this.#isWoken || this.#closing.signal.aborted) return;
    await this.#parts.clock.sleep(wait, AbortSignal.any([this.#nap.signal, this.#closing.signal]));
  }

  async #recorded(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (thrown) {
      this.#parts.log.error({ err: thrown }, "the end of a notice could not be recorded; it is sent again");
    }
  }

  async #post(due: DueDispatch): Promise<void> {
    const { store, options, log } = this.#parts;
    const { dispatches } = store.alarms;
    const secret = options.secret && accountWebhookKey(options.secret, due.accountId);
    const answer = await this.#sender.send({ url: due.target, text: due.body, secret });
    if (answer.kind === "accepted") return dispatches.remove(due.id);
    // A delivery that the shutdown interrupts is made again after the restart.
    if (this.#closing.signal.aborted) return dispatches.later(due.id, this.#nowMs);
    const facts = {
      account: due.accountId,
      host: due.host,
      attempt: due.attempts + 1,
      failure: answer.words,
    };
    if (due.attempts + 1 >= options.attempts) {
      log.error(facts, "the webhook of an alarm has failed for good");
      return dispatches.remove(due.id);
    }
    log.warn(facts, "the webhook of an alarm could not be delivered; it is tried again");
    await dispatches.later(due.id, this.#nowMs + growingWait(options, due.attempts));
  }

  /** The key makes it one push, however often it is sent. */
  async #push({ id, accountId, target, body: text }: DueDispatch): Promise<void> {
    const { store, onPushed } = this.#parts;
    const body = Buffer.from(text);
    await store.operations.accept({
      ...{ accountId, userId: HUB_USER, operationId: target, idempotencyKey: `${target} (by the hub)` },
      digest: createHash("sha256").update(body).digest("hex"),
      ...{ timeoutSec: TIMEOUT_SEC, received: 1, webhookUrl: null, acceptedMs: this.#nowMs },
      body: await compressed(body),
    });
    await store.alarms.dispatches.remove(id);
    onPushed();
  }
}
