/**
 * Times of files at FTP servers without MLSD. LIST tells them by the minute, or by the day when they are old, and in
 * other words as a file ages; a file written again within that minute would look unchanged. So MDTM (RFC 3659,
 * section 3) is asked for each file that LIST shows anew, and its answer is kept while LIST says the same.
 */
import { posix } from "node:path";
import { type Client, FTPError } from "basic-ftp";
import type { ListedItem } from "./list-parser.ts";

/** For this long after a file was first seen, LIST may say the same although the file was written again. */
const YOUNG_MS = 90_000;
/** Codes for what the server does not do (RFC 959, section 4.2). */
const NOT_IMPLEMENTED = [500, 501, 502, 504];

interface Known {
  /** Size and time as LIST told them. */
  readonly listed: string;
  readonly told: string;
  readonly sinceMs: number;
  seenIn: number;
}

/** What is asked: a connection, and where the drop's folder is at its server. */
export interface FtpPlace {
  readonly client: Client;
  readonly root: string;
}

export class FtpTimes {
  readonly #known = new Map<string, Known>();
  #round = 0;
  #refused = false;

  /** False when the server has turned out not to know MDTM. */
  get usable(): boolean {
    return !this.#refused;
  }

  beginListing(): void {
    this.#round += 1;
  }

  /** Forgets the files that the complete listing did not show. */
  endListing(): void {
    for (const [path, known] of this.#known) if (known.seenIn !== this.#round) this.#known.delete(path);
  }

  /** The listed file with the time that MDTM told before, while LIST says the same; null when it has to be asked. */
  recall(path: string, item: ListedItem, nowMs: number): ListedItem | null {
    const known = this.#known.get(path);
    // Only a recent time is told with hours and minutes.
    const young = known !== undefined && item.changed.includes(":") && nowMs - known.sinceMs < YOUNG_MS;
    if (known === undefined || known.listed !== listedWords(item) || young) return null;
    known.seenIn = this.#round;
    return { ...item, changed: known.told };
  }

  /** The listed file with the time that MDTM tells; as it was listed when MDTM does not tell. */
  async sharpen(place: FtpPlace, path: string, item: ListedItem, nowMs: number): Promise<ListedItem> {
    const recalled = this.recall(path, item, nowMs);
    if (recalled !== null) return recalled;
    const listed = listedWords(item);
    const known = this.#known.get(path);
    const told = await this.#ask(place, path);
    if (told === null) return item;
    const sinceMs = known?.listed === listed ? known.sinceMs : nowMs;
    this.#known.set(path, { listed, told, sinceMs, seenIn: this.#round });
    return { ...item, changed: told };
  }

  /**
   * Size and time without listing the whole folder; null when there is no such file; `unclear` when only a listing can
   * tell whether it is a file: SIZE and MDTM follow symbolic links.
   */
  async look(place: FtpPlace, path: string): Promise<{ size: number; changed: string } | null | "unclear"> {
    const listed = this.#known.has(path);
    const changed = await this.#ask(place, path);
    if (changed === null) return listed || this.#refused ? "unclear" : null;
    if (!listed) return "unclear";
    try {
      return { size: await place.client.size(posix.join(place.root, path)), changed };
    } catch (thrown) {
      if (thrown instanceof FTPError) return "unclear";
      throw thrown;
    }
  }

  /** A file that was listed has another name now. */
  moved(from: string, to: string): void {
    const known = this.#known.get(from);
    if (known === undefined) return;
    this.#known.delete(from);
    this.#known.set(to, known);
  }

  async #ask(place: FtpPlace, path: string): Promise<string | null> {
    if (this.#refused) return null;
    try {
      // By its full path: a name that begins with a date would be read as an order to set the time.
      const answer = await place.client.send(`MDTM ${posix.join(place.root, path)}`);
      return /^213[ -]+(\d{14}(\.\d+)?)/.exec(answer.message)?.[1] ?? null;
    } catch (thrown) {
      if (!(thrown instanceof FTPError)) throw thrown;
      if (NOT_IMPLEMENTED.includes(thrown.code)) this.#refused = true;
      return null;
    }
  }
}

function listedWords(item: ListedItem): string {
  return `${item.size} ${item.changed}`;
}
