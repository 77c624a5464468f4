/** Lists one folder of an FTP server, in a style that this server supports. */
import { posix } from "node:path";
import { FTPError } from "basic-ftp";
import { ConfigError, TransientError } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import type { FtpOptions } from "../options.ts";
import { blankHint } from "../refusals.ts";
import type { FtpLink } from "./connections.ts";
import {
  type ListedItem,
  type ListingStyle,
  parseListLine,
  parseMachineLine,
  readListing,
  UnendedListing,
} from "./list-parser.ts";

/** Response codes for an unknown command (RFC 959, section 4.2). */
const NOT_IMPLEMENTED = [500, 501, 502, 504];
/** Response codes of servers that treat an option of LIST as a name. */
const NO_SUCH_NAME = [450, 550];
/** Maximum number of folders whose last unended listing is remembered. */
const UNENDED_MAX = 10_000;

export class FtpLister {
  readonly #options: Pick<FtpOptions, "name" | "listing">;
  readonly #log: Logger;
  /**
   * Once MLSD failed at this server it is not tried again: another format of times would look like a change.
   */
  #mlsdRefused = false;
  /** Requests hidden files, as long as the server accepts the option. */
  #listCommand = "LIST -a";
  #isUnreadLogged = false;
  /** Digests of the last listings without an end, by their folders. */
  readonly #unended = new Map<string, string>();
  /** Whether a listing without an end is repeated at once, since the server seems to end none. */
  #asksTwice = false;
  /** The command of the last listing. */
  usedCommand = "";

  constructor(options: Pick<FtpOptions, "name" | "listing">, log: Logger) {
    this.#options = options;
    this.#log = log;
  }

  /** Whether MLSD and MLST are used. */
  byMachine(link: FtpLink): boolean {
    const { listing } = this.#options;
    return listing === "mlsd" || (listing === "auto" && link.machineListing && !this.#mlsdRefused);
  }

  /**
   * Whether the folder exists. Folders are entered rather than named, since servers differ in how LIST treats
   * spaces and brackets. `mustBe`: its absence is a fault.
   */
  async enter(link: FtpLink, folder: string, mustBe: boolean): Promise<boolean> {
    try {
      await link.client.cd(folder);
      return true;
    } catch (thrown) {
      const refused = !mustBe && thrown instanceof FTPError && thrown.code === 550;
      if (refused && !(await this.#folderExists(link, folder))) return false; // The folder vanished during the listing.
      throw thrown instanceof FTPError && thrown.code === 550 ? this.#notEntered(folder, thrown) : thrown;
    }
  }

  /** 550 also means that there is no such folder, which no right would change. */
  #notEntered(folder: string, cause: FTPError): Error {
    const { name } = this.#options;
    if (!/no such|not found|not exist|cannot find/i.test(cause.message)) return cause;
    const message = `the server of drop ${name} lists the folder ${folder} and then does not find it: ${cause.message}`;
    const facts = { operation: "list drop", subject: name, message, ...blankHint(folder), cause };
    return new ConfigError("HG-DROP-002", facts);
  }

  /** From now on the second listing that a server without line ends needs follows at once. */
  askTwice(): void {
    this.#asksTwice = true;
  }

  /**
   * The items of `folder`, which the connection is in; returns the server's closing text. The caller must
   * read to the end, or the connection breaks. A listing whose last line has no end counts as cut, unless two
   * consecutive ones are equal: then this server never ends it.
   */
  async *items(link: FtpLink, folder: string): AsyncGenerator<readonly ListedItem[], string> {
    try {
      return yield* this.#listed(link);
    } catch (thrown) {
      if (!(thrown instanceof UnendedListing)) throw thrown;
      if (!(await this.#isWhole(link, folder, thrown))) throw this.#cut(folder);
      yield thrown.last;
      return thrown.closing;
    }
  }

  async *#listed(link: FtpLink): AsyncGenerator<readonly ListedItem[], string> {
    for (;;) {
      const style = this.#style(link);
      this.usedCommand = style.command;
      try {
        return yield* readListing(link.client, style, (line) => this.#logUnread(line));
      } catch (thrown) {
        // Refused before the first line, so no item is returned twice.
        if (!(thrown instanceof FTPError) || !this.#otherStyle(style, thrown.code)) throw thrown;
      }
    }
  }

  async #isWhole(link: FtpLink, folder: string, { digest }: UnendedListing): Promise<boolean> {
    const isKnown = this.#unended.get(folder) === digest;
    const isWhole = isKnown || (this.#asksTwice && (await this.#digestAgain(link)) === digest);
    if (isKnown) this.#asksTwice = true;
    if (this.#unended.size >= UNENDED_MAX) this.#unended.clear();
    this.#unended.set(folder, digest);
    return isWhole;
  }

  /** Digest of a second listing of the folder; null when it has an end. */
  async #digestAgain(link: FtpLink): Promise<string | null> {
    try {
      for await (const _ of this.#listed(link));
      return null;
    } catch (thrown) {
      if (thrown instanceof UnendedListing) return thrown.digest;
      throw thrown;
    }
  }

  #cut(folder: string): TransientError {
    const { name } = this.#options;
    return new TransientError("HG-DROP-021", {
      operation: "list drop",
      subject: name,
      message:
        `the listing of the folder ${folder === "" ? "." : folder} of drop ${name} broke off ` +
        "in the middle of its last line",
    });
  }

  /** One item of `folder`, which the connection is in. */
  async find(link: FtpLink, folder: string, name: string): Promise<{ item: ListedItem | undefined; closing: string }> {
    let item: ListedItem | undefined;
    const groups = this.items(link, folder);
    try {
      for (;;) {
        const next = await groups.next();
        if (next.done === true) return { item, closing: next.value };
        item ??= next.value.find((one) => one.name === name);
      }
    } catch (thrown) {
      // Items of a cut listing exist; items that it does not show may exist.
      if (item !== undefined && thrown instanceof TransientError) return { item, closing: "" };
      throw thrown;
    }
  }

  async #folderExists(link: FtpLink, folder: string): Promise<boolean> {
    const above = posix.dirname(folder);
    await link.client.cd(above);
    return (await this.find(link, above, posix.basename(folder))).item?.kind === "folder";
  }

  #style(link: FtpLink): ListingStyle {
    return this.byMachine(link)
      ? { command: "MLSD", parseLine: parseMachineLine }
      : { command: this.#listCommand, parseLine: parseListLine };
  }

  /** Whether another style is left; it is used from now on. */
  #otherStyle(style: ListingStyle, code: number): boolean {
    if (style.command === "MLSD") {
      if (!NOT_IMPLEMENTED.includes(code) || this.#options.listing === "mlsd") return false;
      this.#mlsdRefused = true;
      this.#log.info({ drop: this.#options.name }, "the server offers MLSD but refuses it; LIST is used from now on");
      return true;
    }
    if (style.command === "LIST" || ![...NOT_IMPLEMENTED, ...NO_SUCH_NAME].includes(code)) return false;
    this.#listCommand = "LIST";
    return true;
  }

  #logUnread(line: string): void {
    if (this.#isUnreadLogged) return;
    this.#isUnreadLogged = true;
    this.#log.warn(
      { drop: this.#options.name, line: line.slice(0, 200) },
      "a line of the listing cannot be read; it is left out",
    );
  }
}
