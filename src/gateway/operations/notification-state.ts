/**
 * State of the notifications that survives a restart: known concerns, the receivers that know them, and the next
 * attempt for each receiver. One small file in the spool.
 */
import { readFile } from "node:fs/promises";
import { z } from "zod";
import { writeDurably } from "#core/durable.ts";
import { systemCode, wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import { ATTENTION_KINDS } from "./options.ts";

const facts = z.record(z.string(), z.union([z.string(), z.number(), z.null()]));
const known = z.object({
  key: z.string(),
  kind: z.enum(ATTENTION_KINDS),
  text: z.string(),
  facts,
  /** When the concern was first found. */
  since: z.string(),
  /** Receivers that were notified of it, or were given up. */
  told: z.array(z.string()),
});
export type Known = z.output<typeof known>;

const receiverState = z.object({
  /** When the last message was accepted. */
  sentAt: z.string().nullable(),
  /** Attempts in a row that failed. */
  failures: z.number(),
  /** No attempt before this time. */
  nextAt: z.string().nullable(),
  /** Resolved concerns that are still to be reported. */
  resolved: z.array(known.pick({ key: true, kind: true, text: true })),
});
export type ReceiverState = z.output<typeof receiverState>;

const schema = z.object({ known: z.array(known), receivers: z.record(z.string(), receiverState) });

export class NotificationState {
  readonly known = new Map<string, Known>();
  readonly receivers = new Map<string, ReceiverState>();
  readonly #path: string;
  readonly #log: Logger;
  #saved = "";
  #failing = false;
  #saving: Promise<void> = Promise.resolve();

  private constructor(path: string, log: Logger) {
    this.#path = path;
    this.#log = log;
  }

  /** An unreadable file is replaced: all current concerns are reported again. */
  static async read(path: string, log: Logger): Promise<NotificationState> {
    const state = new NotificationState(path, log);
    try {
      const text = await readFile(path, "utf8");
      const found = schema.parse(JSON.parse(text));
      for (const one of found.known) state.known.set(one.key, one);
      for (const [name, one] of Object.entries(found.receivers)) state.receivers.set(name, one);
      state.#saved = text;
    } catch (thrown) {
      if (systemCode(thrown) !== "ENOENT")
        log.warn(
          { path, reason: wordsOf(thrown) },
          "the state of the notifications cannot be read; all concerns are reported again",
        );
    }
    return state;
  }

  receiver(name: string): ReceiverState {
    let state = this.receivers.get(name);
    if (state === undefined) {
      state = { sentAt: null, failures: 0, nextAt: null, resolved: [] };
      this.receivers.set(name, state);
    }
    return state;
  }

  /** Never rejects: a full disk is logged once, and the state stays in memory. */
  save(): Promise<void> {
    this.#saving = this.#saving.then(() => this.#write());
    return this.#saving;
  }

  async #write(): Promise<void> {
    const text = JSON.stringify({
      known: [...this.known.values()],
      receivers: Object.fromEntries(this.receivers),
    } satisfies z.input<typeof schema>);
    if (text === this.#saved) return;
    try {
      await writeDurably(this.#path, text);
      this.#saved = text;
      this.#failing = false;
    } catch (thrown) {
      if (!this.#failing)
        this.#log.warn({ path: this.#path, reason: wordsOf(thrown) }, "the state of the notifications cannot be saved");
      this.#failing = true;
    }
  }
}
