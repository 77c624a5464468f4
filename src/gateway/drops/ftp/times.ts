/**
 * Times of files on FTP servers without MLSD. LIST has times by the minute, or by the day for old files, and
 * changes their format as a file ages; a file that is rewritten within that minute would look unchanged. So
 * MDTM (RFC 3659, section 3) is requested for each file that LIST shows differently, and its result is kept
 * while LIST shows the same.
 */
import { posix } from "node:path";
import { type Client, FTPError } from "basic-ftp";
import type { ListedItem } from "./list-parser.ts";

/** For this long after a file was first seen, LIST may show the same although the file was rewritten. */
const YOUNG_MS = 90_000;
/** Codes for unsupported commands (RFC 959, section 4.2). */
const NOT_IMPLEMENTED = [500, 501, 502, 504];

interface Known {
  /** Size and time in the format of LIST. */
  readonly listed: string;
  readonly exact: string;
  readonly sinceMs: number;
  seenIn: number;
}

/** A connection, and the drop's folder on its server. */
export interface FtpPlace {
  readonly client: Client;
  readonly root: string;
}

export class FtpTimes {
  readonly #known = new Map<string, Known>();
  #round = 0;
  #refused = false;

  /** False when the server does not support MDTM. */
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

  /**
   * The listed file with the earlier time of MDTM, while LIST shows the same; null when MDTM must be
   * requested.
   */
  recall(path: string, item: ListedItem, nowMs: number): ListedItem | null {
    const known = this.#known.get(path);
    // Only a recent time has hours and minutes.
    const young = known !== undefined && item.changed.includes(":") && nowMs - known.sinceMs < YOUNG_MS;
    if (known === undefined || known.listed !== listedWords(item) || young) return null;
    known.seenIn = this.#round;
    return { ...item, changed: known.exact };
  }

  /** The listed file with the time of MDTM; with the listed time when MDTM fails. */
  async sharpen(place: FtpPlace, path: string, item: ListedItem, nowMs: number): Promise<ListedItem> {
    const recalled = this.recall(path, item, nowMs);
    if (recalled !== null) return recalled;
    const listed = listedWords(item);
    const known = this.#known.get(path);
    const exact = await this.#ask(place, path);
    if (exact === null) return item;
    const sinceMs = known?.listed === listed ? known.sinceMs : nowMs;
    this.#known.set(path, { listed, exact, sinceMs, seenIn: this.#round });
    return { ...item, changed: exact };
  }

  /**
   * Size and time without a listing of the whole folder; null when there is no such file; `unclear` when only
   * a listing can show whether it is a file: SIZE and MDTM follow symbolic links.
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

  /** A listed file was renamed. */
  moved(from: string, to: string): void {
    const known = this.#known.get(from);
    if (known === undefined) return;
    this.#known.delete(from);
    this.#known.set(to, known);
  }

  async #ask(place: FtpPlace, path: string): Promise<string | null> {
    if (this.#refused) return null;
    try {
      // By its full path: a name that begins with a date would be read as a command to set the time.
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
