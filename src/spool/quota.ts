/**
 * Whether the spool has room for another file. While a service is away, what is mapped piles up here and nowhere else, so this is where an
 * outage is bounded: at the budget, or when the disk runs short, nothing more is taken, and files stay where they lie. What was
 * taken goes on to its end, which makes room again.
 */
import { statfs } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../support/clock.ts";
import { triedOnce } from "../support/disk-work.ts";
import { type ErrorCode, wordsOf } from "../support/errors.ts";
import type { Logger } from "../support/log.ts";
import { sizeOf } from "./kept-files.ts";
import type { SpoolOptions } from "./options.ts";
import { bytesBelow } from "./usage.ts";

export interface RoomState {
  /** Bytes of inputs, segments and bodies under way, and of what is being fetched. */
  readonly usedBytes: number;
  /** What of them is bodies that wait in the ledger's database, where all nodes have them. */
  readonly sharedBytes: number;
  /** What of them belongs to held runs, which only a person or the structure can let go; looked at when much is in use. */
  readonly held: HeldBytes;
  readonly budgetBytes: number;
  /** Of the disk, for this user. */
  readonly freeBytes: number;
  /** Why nothing more is taken, in words; null while files are taken. */
  readonly full: string | null;
}

export interface HeldBytes {
  readonly runs: number;
  readonly bytes: number;
}

export interface Refusal {
  readonly code: ErrorCode;
  /** Without numbers that change, so that it is one reason for as long as it lasts. */
  readonly words: string;
}

/** What is counted, below the root of the spool. What is kept for replay has a limit of its own. */
const BODIES = "intake";
const INPUTS = "inputs";
const COUNTED = [INPUTS, "segments", BODIES];
/** A file is here as it came, and as the batches that are made of it, which are larger. */
const COPIES = 3;
/** Once full, files are taken again below this share of the budget, and above that share of the headroom. */
const AGAIN = { budget: 0.9, headroom: 1.1 } as const;
/** Counting is work too: at most this share of the time. */
const COUNTING_SHARE = 0.05;
const COUNTED_MS = 1_000;
/** While somebody waits for room. */
const AWAITED_MS = 50;
/** While there is plenty of room: below this share of the budget, and with so many times the headroom left, by what was written since. */
const PLENTY = { budget: 0.5, headroom: 4, countedMs: 10_000 } as const;
/** Below this share of the budget nobody asks what held runs take. */
const HELD_ASKED_SHARE = 0.25;
const HELD_TOLD_SHARE = 0.1;
const NONE_HELD: HeldBytes = { runs: 0, bytes: 0 };
const MAPPED_WITHIN_MS = 600_000;
/** Who waits for room asks more often by itself. */
const GIVEN_UP_MS = 10_000;

interface Reservation {
  readonly bytes: number;
  readonly untilMs: number;
}

export interface RoomMeans {
  readonly clock: Clock;
  readonly log: Logger;
  /** Ids of the runs that are held. */
  readonly held: () => Promise<ReadonlySet<string>>;
  /** Bytes of bodies that intakes took into the ledger's database and that wait there. Null where there are none. */
  readonly shared: (() => Promise<number>) | null;
  /** Runs that were refused before, in that order, and may find room now. */
  readonly onRoom?: (ids: readonly string[]) => void;
}

export class SpoolRoom {
  readonly #root: string;
  readonly #options: Pick<SpoolOptions, "budget" | "headroom">;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #askHeld: RoomMeans["held"];
  readonly #askShared: RoomMeans["shared"];
  readonly #onRoom: NonNullable<RoomMeans["onRoom"]>;
  /** Runs that wait for room, in the order in which they came: how much they need, and when they asked last. */
  readonly #refused = new Map<string, { readonly need: number; readonly askedMs: number }>();
  /** Something was given back since the last count. */
  #isFreer = false;
  #timer: NodeJS.Timeout | undefined;
  #held = NONE_HELD;
  #shared = 0;
  /** Bytes of bodies that intakes have, here or in the ledger's database. */
  #bodies = 0;
  /** As the refusal has it. */
  #toldHeld = NONE_HELD;
  /** Bytes that runs are going to write. */
  readonly #reserved = new Map<string, Reservation>();
  #reservedBytes = 0;
  /** Bytes that they have written since the last count. */
  #since = 0;
  #counted = 0;
  #free = Number.POSITIVE_INFINITY;
  #countTookMs = 0;
  #countedAtMs = Number.NEGATIVE_INFINITY;
  #counting: Promise<void> | null = null;
  #full: Refusal | null = null;

  constructor(root: string, options: Pick<SpoolOptions, "budget" | "headroom">, means: RoomMeans) {
    this.#root = root;
    this.#options = options;
    this.#clock = means.clock;
    this.#log = means.log;
    this.#askHeld = means.held;
    this.#askShared = means.shared;
    this.#onRoom = means.onRoom ?? (() => undefined);
  }

  async state(): Promise<RoomState> {
    await this.#count();
    return {
      usedBytes: this.#used(),
      sharedBytes: this.#shared,
      held: this.#held,
      budgetBytes: this.#options.budget,
      freeBytes: this.#free,
      full: this.#full?.words ?? null,
    };
  }

  /** Whether anything is taken at all; null when it is. */
  async full(): Promise<Refusal | null> {
    await this.#count();
    return this.#full;
  }

  /**
   * Takes room for a file that is going to be fetched, until `fetched`; or answers why it has to stay where it is. `isEntry`: of a container
   * that is here, which does not go before its entries: these come whatever the budget says, as long as the disk has room. `isBody`: an
   * intake has it, and so it is counted already.
   */
  async reserve(id: string, bytes: number, isEntry: boolean, isBody = false): Promise<Refusal | null> {
    if (!this.#hasPlenty()) await this.#count();
    const need = bytes * COPIES;
    this.#setReserved(id, null);
    // What an earlier attempt brought of it is written over, and does not stand in its own way.
    const own = this.#hasPlenty() ? 0 : (triedOnce(() => sizeOf(join(this.#root, INPUTS, id))) ?? 0);
    const refusal = this.#refusalOf(need, own, isEntry, isBody);
    if (refusal !== null) {
      this.#refused.set(id, { need, askedMs: this.#clock.monotonicMs() });
      // Before anybody waited for it, nobody counted what was given back.
      if (this.#isFreer) this.freed();
      return refusal;
    }
    this.#refused.delete(id);
    this.#setReserved(id, { bytes: Math.max(0, need - own), untilMs: Number.POSITIVE_INFINITY });
    return null;
  }

  /** `own`: bytes of it that are here. */
  #refusalOf(need: number, own: number, isEntry: boolean, isBody: boolean): Refusal | null {
    if (this.#full?.code === "HG-SPOOL-004") return this.#full;
    const { budget, headroom } = this.#options;
    if (this.#free + own - need < headroom) {
      if (this.#free < AGAIN.headroom * headroom) this.#close(this.#diskShort());
      return this.#diskShort();
    }
    if (!isEntry) {
      // Bodies that wait make room by going on alone, so they do not stand in their own way.
      const used = this.#used() - own - (isBody ? this.#bodies : 0);
      // A file beyond the budget comes alone, or it would never come.
      if (used <= 0 && own > 0 && this.#full?.code !== "HG-SPOOL-006") return null;
      const over = used > 0 && used + need > budget;
      if (over && used >= AGAIN.budget * budget) this.#close(this.#overBudget());
      if (this.#full !== null && (over || !isBody)) return this.#full;
      if (over) return tooLargeNow(this.#held);
    }
    return null;
  }

  /** A file of so many bytes was fetched, and is going to be mapped. Null: it was not. */
  fetched(id: string, bytes: number | null): void {
    if (bytes === null) {
      this.#setReserved(id, null);
      this.freed();
      return;
    }
    // Somebody may give the run up before it is mapped.
    this.#setReserved(id, {
      bytes: bytes * (COPIES - 1),
      untilMs: this.#clock.monotonicMs() + MAPPED_WITHIN_MS,
    });
    this.#since += bytes;
  }

  /** What is to be written of the run is written. */
  mapped(id: string): void {
    this.#since += this.#reserved.get(id)?.bytes ?? 0;
    this.#setReserved(id, null);
    this.freed();
  }

  /** Something in the spool is gone, or takes less than it might have: who was refused hears of it when it is counted. */
  freed(): void {
    this.#isFreer = true;
    if (this.#refused.size === 0 || this.#timer !== undefined) return;
    const waitMs = Math.max(0, this.#countDueMs() - this.#clock.monotonicMs());
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.#recount();
    }, waitMs).unref();
  }

  close(): void {
    this.#refused.clear();
    clearTimeout(this.#timer);
  }

  #setReserved(id: string, next: Reservation | null): void {
    this.#reservedBytes += (next?.bytes ?? 0) - (this.#reserved.get(id)?.bytes ?? 0);
    if (next === null) this.#reserved.delete(id);
    else this.#reserved.set(id, next);
  }

  #used(): number {
    return this.#reservedBytes + this.#counted + this.#since;
  }

  /** What runs write is known without counting. What was given back is not, nor what intakes took and others did to the disk: of these there is not much in that time. */
  #hasPlenty(): boolean {
    const { budget, headroom } = this.#options;
    return (
      this.#full === null &&
      this.#clock.monotonicMs() < this.#countedAtMs + PLENTY.countedMs &&
      this.#used() < PLENTY.budget * budget &&
      this.#free - this.#reservedBytes - this.#since > PLENTY.headroom * headroom
    );
  }

  /** Counts anew when that was long enough ago. Whoever asks meanwhile waits for the same count. */
  async #count(): Promise<void> {
    if (this.#counting === null && this.#clock.monotonicMs() < this.#countDueMs()) return;
    await this.#recount();
  }

  #recount(): Promise<void> {
    this.#counting ??= this.#countNow().finally(() => {
      this.#counting = null;
    });
    return this.#counting;
  }

  #countDueMs(): number {
    const leastMs = this.#refused.size > 0 ? AWAITED_MS : COUNTED_MS;
    return this.#countedAtMs + Math.max(leastMs, this.#countTookMs / COUNTING_SHARE);
  }

  async #countNow(): Promise<void> {
    const begunMs = this.#clock.monotonicMs();
    const before = this.#since;
    const wasFull = this.#full !== null;
    const isFreer = this.#isFreer;
    this.#isFreer = false;
    for (const [id, { untilMs }] of this.#reserved) if (untilMs < begunMs) this.#setReserved(id, null);
    try {
      const held = await this.#heldRuns();
      const isHeld = new Set<string>();
      let bytes = 0;
      let bodies = 0;
      let heldBytes = 0;
      for (const folder of COUNTED) {
        const found = await bytesBelow(join(this.#root, folder), (name, size) => {
          const [id = ""] = name.split(".", 1);
          if (!held.has(id)) return;
          isHeld.add(id);
          heldBytes += size;
        });
        bytes += found;
        if (folder === BODIES) bodies += found;
      }
      this.#held = { runs: isHeld.size, bytes: heldBytes };
      // While the ledger cannot be asked, it is as it was.
      this.#shared = (await this.#askShared?.().catch(() => this.#shared)) ?? 0;
      const { bavail, bsize } = await statfs(this.#root);
      this.#counted = bytes + this.#shared;
      this.#bodies = bodies + this.#shared;
      this.#since -= before;
      this.#free = bavail * bsize;
      this.#judge();
    } catch (thrown) {
      // It has vanished, or may not be read: what cannot be counted is not filled either.
      const words = `no files are taken: the spool cannot be looked through (${wordsOf(thrown)}); files stay at their drops`;
      this.#close({ code: "HG-SPOOL-004", words });
    }
    const nowMs = this.#clock.monotonicMs();
    this.#countedAtMs = nowMs;
    this.#countTookMs = nowMs - begunMs;
    if (this.#full === null && (isFreer || wasFull)) this.#tellRoom();
    if (this.#isFreer) this.freed();
  }

  /** As many as may fit, first come first served: each of them asks again, and others have asked meanwhile. */
  #tellRoom(): void {
    const { budget, headroom } = this.#options;
    let left = Math.min(budget - this.#used(), this.#free - headroom);
    const isEmpty = this.#used() === 0;
    const told: string[] = [];
    for (const [id, { need, askedMs }] of this.#refused) {
      const isGivenUp = this.#clock.monotonicMs() > askedMs + GIVEN_UP_MS;
      if (!isGivenUp) {
        left -= need;
        if (left < 0 && !(isEmpty && told.length === 0)) break;
        told.push(id);
      }
      this.#refused.delete(id);
    }
    if (told.length > 0) this.#onRoom(told);
  }

  /** None while little is in use: to ask is work too. */
  async #heldRuns(): Promise<ReadonlySet<string>> {
    const isFirst = this.#countedAtMs === Number.NEGATIVE_INFINITY;
    if (!isFirst && this.#used() < HELD_ASKED_SHARE * this.#options.budget) return new Set();
    // What fills the spool is counted without the ledger too.
    return await this.#askHeld().catch(() => new Set<string>());
  }

  #judge(): void {
    const { budget, headroom } = this.#options;
    if (this.#full === null) {
      if (this.#used() >= budget) this.#close(this.#overBudget());
      else if (this.#free < headroom) this.#close(this.#diskShort());
      return;
    }
    if (this.#used() > AGAIN.budget * budget || this.#free < AGAIN.headroom * headroom) {
      if (this.#full.code === "HG-SPOOL-005" && this.#isToldOtherwise()) this.#full = this.#overBudget();
      return;
    }
    this.#full = null;
    this.#log.info(this.#numbers(), "the spool has room again: files are taken again");
  }

  /** What held runs take is not what was said of them; small changes are no reason to say it anew of each file. */
  #isToldOtherwise(): boolean {
    const [now, told] = [this.#held, this.#toldHeld];
    return (
      (now.runs === 0) !== (told.runs === 0) ||
      Math.abs(now.bytes - told.bytes) >= HELD_TOLD_SHARE * this.#options.budget
    );
  }

  #close(refusal: Refusal): void {
    if (this.#full !== null) return;
    this.#full = refusal;
    this.#log.warn({ code: refusal.code, ...this.#numbers() }, refusal.words);
  }

  #numbers() {
    const { budget, headroom } = this.#options;
    return { usedBytes: this.#used(), budgetBytes: budget, freeBytes: this.#free, headroomBytes: headroom };
  }

  #overBudget(): Refusal {
    this.#toldHeld = this.#held;
    return {
      code: "HG-SPOOL-005",
      words: `no files are taken: what waits to be delivered fills the budget of the spool (\`spool.budget\`, ${this.#options.budget} bytes); files stay at their drops until there is room${heldWords(this.#held)}`,
    };
  }

  #diskShort(): Refusal {
    return {
      code: "HG-SPOOL-006",
      words: `no files are taken: the disk of the spool has less free space than it should keep (\`spool.headroom\`, ${this.#options.headroom} bytes); files stay at their drops until there is room`,
    };
  }
}

function tooLargeNow({ runs }: HeldBytes): Refusal {
  const held = runs === 0 ? "" : "; held runs take a part of it: `headgate quarantine` lists them";
  return {
    code: "HG-SPOOL-005",
    words: `the file is larger than what is left of the budget of the spool (\`spool.budget\`); it stays at its drop until there is room${held}`,
  };
}

/** Empty when none is held. What they wait for comes by no waiting of the gateway's. */
function heldWords({ runs, bytes }: HeldBytes): string {
  if (runs === 0) return "";
  return `; ${runs} held ${runs === 1 ? "run takes" : "runs take"} ${bytes} bytes of it: \`headgate quarantine\` says what each waits for, and how to let it go or give it up`;
}
