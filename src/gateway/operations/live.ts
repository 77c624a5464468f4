/**
 * Changes for the browsers that are connected. Each second everything that changed is worded once, and written to all
 * of them. Without clients nothing is kept and nothing is counted.
 */

import { type Clock, isoInstant } from "#core/clock.ts";
import { RejectedError, wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import { masked } from "#core/secrets.ts";
import type { DropState, LedgerEvent } from "../model.ts";
import { ARRIVAL_STATES, type ArrivalState, RUN_STATES, type RunState } from "../states.ts";
import type { Person, StreamClient } from "./api/endpoint.ts";
import type { LiveEvents } from "./api/live.ts";
import { isPaused } from "./state-of-work.ts";

const TICK_MS = 1_000;
const COMMENT_MS = 15_000;
/** Concerns that no event of a file announces, such as late files, and events of other nodes. */
const RECOUNT_MS = 10_000;
/** Counting takes this share of the time at most. */
const COUNT_SHARE = 1 / 40;
const FILES_MAX = 50;
const CLIENTS_MAX = 64;
const CLIENTS_OF_PERSON_MAX = 8;

export interface LiveSources {
  /** How many concerns need attention. */
  attention(): Promise<number>;
  drops(): readonly DropState[];
  /**
   * Reads the events of all nodes after the one with this number, where several share the ledger; null: the number
   * alone. Absent where each event is noted in this process.
   */
  readonly changes?: (
    after: number | null,
  ) => Promise<{ readonly events: readonly FileEvent[]; readonly last: number }>;
}

type File = LiveEvents["files"]["files"][number];
type FileEvent = LedgerEvent & { readonly drop: string; readonly path: string };

export class LiveUpdates {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #clients = new Map<StreamClient, string>();
  readonly #stop = new AbortController();
  #sources: LiveSources | null = null;
  #loop: Promise<void> | null = null;
  /** In the order of their last change. */
  readonly #files = new Map<number, File>();
  #isCut = false;
  #hasChanged = false;
  #attention: number | null = null;
  /** No count before this time; a change until then makes one due. */
  #countAtMs = 0;
  #isCountDue = false;
  #drops = "";
  /** Number of the last event that was read from a shared ledger; null before the first. */
  #readTo: number | null = null;

  constructor({ clock, log }: { readonly clock: Clock; readonly log: Logger }) {
    this.#clock = clock;
    this.#log = log;
  }

  /** Called when the parts are opened that know more than the events. */
  connectTo(sources: LiveSources): void {
    this.#sources = sources;
  }

  /** Called for each event after it was committed. Those of a shared ledger are read from there. */
  note(event: FileEvent): void {
    if (this.#clients.size > 0 && this.#sources?.changes === undefined) this.#take(event);
  }

  #take({ arrivalId: id, path, drop, what }: FileEvent): void {
    this.#hasChanged = true;
    const state = stateOf(what);
    if (state === null) return;
    this.#files.delete(id);
    this.#files.set(id, { id, path, drop, state });
    const [oldest] = this.#files.keys();
    if (this.#files.size <= FILES_MAX || oldest === undefined) return;
    this.#files.delete(oldest);
    this.#isCut = true;
  }

  /** Throws `RejectedError` when too many are connected, of this person or of all. */
  add(client: StreamClient, { name }: Person): void {
    const own = [...this.#clients.values()].filter((one) => one === name).length;
    if (this.#stop.signal.aborted || this.#clients.size >= CLIENTS_MAX || own >= CLIENTS_OF_PERSON_MAX)
      throw new RejectedError("HG-OPS-009", {
        operation: "follow changes",
        subject: name,
        message: `${own} pages of ${name} and ${this.#clients.size} in all follow the changes already`,
      });
    this.#clients.set(client, name);
    client.onGone(() => this.#clients.delete(client));
    client.write(this.#words("state", this.#state()));
    this.#loop ??= this.#run();
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#loop;
    for (const client of this.#clients.keys()) client.end();
  }

  async #run(): Promise<void> {
    this.#countAtMs = 0;
    let commentedMs = this.#clock.monotonicMs();
    // Changes count from here.
    if (this.#sources?.changes !== undefined) await this.#readShared();
    while (this.#clients.size > 0 && (await this.#clock.sleep(TICK_MS, this.#stop.signal))) {
      const nowMs = this.#clock.monotonicMs();
      const isDue = nowMs >= commentedMs + COMMENT_MS;
      if (isDue) commentedMs = nowMs;
      const texts = [...(await this.#changes()), ...(isDue ? [": still here\n\n"] : [])];
      for (const client of [...this.#clients.keys()]) {
        if (isDue && !client.isAdmitted()) client.end();
        else if (texts.length > 0) client.write(texts.join(""));
      }
    }
    this.#loop = null;
    this.#files.clear();
    this.#drops = "";
    this.#attention = null;
    this.#readTo = null;
  }

  async #readShared(): Promise<void> {
    try {
      const found = await this.#sources?.changes?.(this.#readTo);
      if (found === undefined) return;
      this.#readTo = found.last;
      for (const event of found.events) this.#take(event);
    } catch (thrown) {
      this.#log.warn({ reason: wordsOf(thrown) }, "the events of other nodes could not be read for the console");
    }
  }

  async #changes(): Promise<readonly string[]> {
    await this.#readShared();
    const hadChange = this.#hasChanged;
    const files = { files: [...this.#files.values()], isCut: this.#isCut };
    this.#files.clear();
    this.#hasChanged = this.#isCut = false;
    const isRecounted = await this.#recount(hadChange);
    const texts = files.files.length === 0 ? [] : [this.#words("files", files)];
    const drops = this.#words("drops", { drops: (this.#sources?.drops() ?? []).map(dropFacts) });
    if (drops !== this.#drops) texts.push(drops);
    const total = this.#attention;
    if (isRecounted === "changed" && total !== null) texts.push(this.#words("attention", { total }));
    if (hadChange || isRecounted !== "no" || drops !== this.#drops) texts.push(this.#words("state", this.#state()));
    this.#drops = drops;
    return texts;
  }

  /** Counts the concerns where something changed, and now and then in any case. */
  async #recount(hasChanged: boolean): Promise<"no" | "same" | "changed"> {
    const beganMs = this.#clock.monotonicMs();
    if (this.#sources === null || beganMs < this.#countAtMs) {
      // A change during the pause is counted after it.
      if (hasChanged) this.#isCountDue = true;
      return "no";
    }
    const isOld = this.#attention === null || beganMs >= this.#countAtMs + RECOUNT_MS;
    if (!hasChanged && !this.#isCountDue && !isOld) return "no";
    this.#isCountDue = false;
    const before = this.#attention;
    try {
      this.#attention = await this.#sources.attention();
    } catch (thrown) {
      this.#log.warn({ reason: wordsOf(thrown) }, "what needs attention could not be counted for the console");
    }
    const endedMs = this.#clock.monotonicMs();
    this.#countAtMs = endedMs + (endedMs - beganMs) / COUNT_SHARE;
    return before === this.#attention ? "same" : "changed";
  }

  #state(): LiveEvents["state"] {
    return { attention: this.#attention, overviewAt: isoInstant(this.#clock.now()) };
  }

  #words<Name extends keyof LiveEvents>(name: Name, data: LiveEvents[Name]): string {
    return `event: ${name}\ndata: ${masked(JSON.stringify(data))}\n\n`;
  }
}

/** `run.quarantined` and `arrival.settling` name a state; other events do not. */
function stateOf(what: string): ArrivalState | RunState | null {
  const [subject, state = ""] = what.split(".");
  if (subject === "run" && Object.hasOwn(RUN_STATES, state)) return state as RunState;
  return subject === "arrival" && Object.hasOwn(ARRIVAL_STATES, state) ? (state as ArrivalState) : null;
}

function dropFacts(state: DropState): LiveEvents["drops"]["drops"][number] {
  const { drop, paused, lastError, settlingCount, leftCount } = state;
  const isPausedNow = isPaused(state);
  return {
    name: drop,
    state: isPausedNow ? "paused" : lastError === null ? "ok" : "trouble",
    words: isPausedNow ? paused : (lastError?.message ?? null),
    waiting: settlingCount + leftCount,
  };
}
