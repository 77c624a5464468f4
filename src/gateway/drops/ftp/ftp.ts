/** A directory on an FTP or FTPS server as a drop. Symbolic links are not followed. */
import { posix } from "node:path";
import { Readable, Writable } from "node:stream";
import { TLSSocket } from "node:tls";
import { type Client, FTPError } from "basic-ftp";
import { systemClock } from "#core/clock.ts";
import { type ConfigError, wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import type { FileEntry } from "../../model.ts";
import type { Drop, ProbeFinding } from "../drop.ts";
import type { SourceFiles } from "../finish.ts";
import type { FolderWalk } from "../folder-walk.ts";
import type { FtpOptions } from "../options.ts";
import type { ProbeSteps } from "../probe.ts";
import { certificateFinding, saidWords } from "../probe-findings.ts";
import type { TrialFiles } from "../probe-trial.ts";
import type { Receiver } from "../receive.ts";
import { cutShort, vanished } from "../refusals.ts";
import { type RemoteCheck, RemoteDrop, type RemoteProtocol } from "../remote-drop.ts";
import type { DataSeen } from "./client.ts";
import { FtpConnections, type FtpLink, portOf } from "./connections.ts";
import { type ListedItem, mlsdTimeMs, parseMlsxLine } from "./list-parser.ts";
import { FtpLister } from "./lister.ts";

/** Features that the drop uses, as FEAT names them (RFC 2389). */
const FEATURES = ["MLST", "MDTM", "SIZE", "REST", "UTF8", "EPSV"];

/** For this long after a file was first seen, LIST may show the same although the file was rewritten. */
const YOUNG_MS = 90_000;
/** Codes for unsupported commands (RFC 959, section 4.2). */
const NOT_IMPLEMENTED = [500, 501, 502, 504];

const READABLE =
  "the password and the files of this FTP drop go over the network readably; set `tls: explicit` if the server can";

/** Does not use the network. */
export function createFtpDrop(options: FtpOptions, log: Logger): Drop {
  if (options.tls === "none") log.warn({ drop: options.name, host: options.host }, READABLE);
  return new RemoteDrop(options, log, new FtpProtocol(options, log));
}

class FtpProtocol implements RemoteProtocol<FtpLink> {
  readonly kind = "ftp";
  readonly address: string;
  readonly check: RemoteCheck;
  readonly #options: FtpOptions;
  readonly #log: Logger;
  readonly #connections: FtpConnections;
  readonly #lister: FtpLister;
  readonly #times = new FtpTimes();

  constructor(options: FtpOptions, log: Logger) {
    this.#options = options;
    this.#log = log;
    this.address = `${options.host}:${portOf(options)}`;
    this.#connections = new FtpConnections(options);
    this.#lister = new FtpLister(options, log);
    const exists = async (path: string, signal: AbortSignal) =>
      (await this.use(signal, (link) => this.stat(link, path))) !== null;
    this.check = {
      whyNoClock: "the server has times by the minute at best",
      steps: ftpSteps(options, this.#connections),
      listedBy: () => ` by ${this.#lister.usedCommand}`,
      begin: () => this.#lister.askTwice(),
      trial: (signal) => ftpTrial({ connections: this.#connections, exists }, signal),
    };
  }

  use<T>(signal: AbortSignal, work: (link: FtpLink) => Promise<T>): Promise<T> {
    return this.#connections.use(signal, work);
  }

  async *list(walk: FolderWalk, signal: AbortSignal): AsyncGenerator<readonly FileEntry[]> {
    if (walk.isWholeDrop) this.#times.beginListing();
    // The connection stays lent while the consumer reads: the server waits for a slow one, and no listing is
    // held in memory.
    const lease = await this.#connections.lend(signal);
    let ended = false;
    try {
      yield* this.#listFolders(lease.link, walk);
      ended = true;
      lease.end();
    } catch (thrown) {
      ended = true;
      throw lease.fail(thrown);
    } finally {
      if (!ended) lease.fail(new Error("the listing was left early"));
    }
    if (walk.isWholeDrop) this.#times.endListing();
  }

  async *#listFolders(link: FtpLink, walk: FolderWalk): AsyncGenerator<readonly FileEntry[]> {
    let partial: ConfigError | null = null;
    for (let folder = walk.next(); folder !== undefined; folder = walk.next()) {
      if (!(await this.#lister.enter(link, posix.join(link.root, folder), folder === ""))) continue;
      const unclear: [string, ListedItem][] = [];
      const closing = yield* this.#listFolder(link, folder, walk, unclear);
      // Queried after the listing, since a connection does one thing at a time; so new files are returned
      // last.
      for (const [path, item] of unclear)
        yield [entryOf(path, await this.#times.sharpen(link, path, item, performance.now()))];
      if (isTruncated(closing))
        partial ??= cutShort(this.#options.name, folder === "" ? this.#options.path : folder, closing);
      else walk.complete();
    }
    // The listed entries were returned, but the listing is not complete.
    if (partial !== null) throw partial;
  }

  async *#listFolder(
    link: FtpLink,
    folder: string,
    walk: FolderWalk,
    unclear: [string, ListedItem][],
  ): AsyncGenerator<readonly FileEntry[], string> {
    const items = this.#lister.items(link, posix.join(link.root, folder));
    try {
      for (;;) {
        const next = await items.next();
        if (next.done === true) return next.value;
        const files: FileEntry[] = [];
        for (const item of next.value) {
          if (this.#cannotBeNamed(item, folder)) continue;
          const path = walk.take(item);
          if (path === null) continue;
          const known = this.#asksTimes(link) ? this.#times.recall(path, item, performance.now()) : item;
          if (known === null) unclear.push([path, item]);
          else files.push(entryOf(path, known));
        }
        yield files;
      }
    } finally {
      await items.return("");
    }
  }

  /** A line break would end the command that names the folder. */
  #cannotBeNamed({ name, kind }: ListedItem, folder: string): boolean {
    if (kind !== "folder" || !/\\x0[AD]/.test(name)) return false;
    const facts = { drop: this.#options.name, folder: posix.join(folder, name) };
    this.#log.warn(facts, "a folder with a line break in its name is not listed");
    return true;
  }

  #asksTimes(link: FtpLink): boolean {
    const { listing } = this.#options;
    return listing === "auto" && link.fileTimes && this.#times.usable && !this.#lister.byMachine(link);
  }

  /** By MLST; where the server has no MLST, by a listing of the folder, so that times compare equal. */
  async stat(link: FtpLink, path: string): Promise<FileEntry | null> {
    if (this.#lister.byMachine(link)) return this.#statByFacts(link, path);
    if (!this.#asksTimes(link)) return this.#statByListing(link, path);
    const seen = await this.#times.look(link, path);
    if (seen !== "unclear") return seen && { path, size: seen.size, mtime: seen.changed };
    const entry = await this.#statByListing(link, path);
    if (entry === null) return null;
    const item = { name: path, kind: "file" as const, size: entry.size, changed: entry.mtime };
    return entryOf(path, await this.#times.sharpen(link, path, item, performance.now()));
  }

  async #statByListing(link: FtpLink, path: string): Promise<FileEntry | null> {
    const folder = posix.join(link.root, posix.dirname(path));
    try {
      await link.client.cd(folder);
    } catch (thrown) {
      if (thrown instanceof FTPError && thrown.code === 550) return null;
      throw thrown;
    }
    const { item, closing } = await this.#lister.find(link, folder, posix.basename(path));
    if (item === undefined && isTruncated(closing)) throw cutShort(this.#options.name, posix.dirname(path), closing);
    return item?.kind === "file" ? entryOf(path, item) : null;
  }

  async #statByFacts(link: FtpLink, path: string): Promise<FileEntry | null> {
    try {
      const answer = await link.client.send(`MLST ${posix.join(link.root, path)}`);
      const line = answer.message.split(/\r?\n/).find((one) => one.startsWith(" "));
      const item = line === undefined ? null : parseMlsxLine(line.slice(1));
      // Here ProFTPD reports symbolic links as files, but not in listings.
      if (item?.kind === "file" && item.mayBeLink === true) return await this.#statByListing(link, path);
      return item?.kind === "file" ? entryOf(path, item) : null;
    } catch (thrown) {
      if (thrown instanceof FTPError && thrown.code === 550) return null;
      throw thrown;
    }
  }

  async copy(link: FtpLink, entry: FileEntry, receiver: Receiver): Promise<void> {
    if (!link.restart && receiver.bytes > 0) await receiver.restart();
    if (receiver.bytes < entry.size || entry.size === 0) {
      const sink = sinkOf(receiver);
      try {
        await link.client.downloadTo(sink.stream, posix.join(link.root, entry.path), receiver.bytes);
      } catch (thrown) {
        await sink.atRest();
        const gone = thrown instanceof FTPError && (await this.stat(link, entry.path)) === null;
        throw gone ? vanished(this.#options.name, entry.path) : (sink.failure() ?? thrown);
      }
    }
  }

  files(link: FtpLink): Omit<SourceFiles, "stat"> {
    const full = (path: string) => posix.join(link.root, path);
    return {
      makeFolder: async (path) => {
        const answer = await link.client.sendIgnoringError(`MKD ${full(path)}`);
        // MKD is refused when the folder exists already; then it can be entered.
        if (answer.code >= 400) await link.client.cd(full(path));
      },
      move: async (from, to) => {
        await link.client.rename(full(from), full(to));
        this.#times.moved(from, to);
        return null;
      },
      remove: async (path) => {
        try {
          await link.client.remove(full(path));
        } catch (thrown) {
          if ((await this.stat(link, path)) !== null) throw thrown;
        }
      },
      // Permanent refusals (RFC 959, section 4.2.1); passing faults have a 4yz code.
      isRefused: (thrown) => thrown instanceof FTPError && thrown.code >= 500,
    };
  }

  modifiedMs(entry: FileEntry): number | null {
    return mlsdTimeMs(entry.mtime);
  }

  /**
   * 550: no access; 553: name not allowed (RFC 959, section 4.2). Servers also use them for other faults of a
   * move.
   */
  meaningOf(thrown: unknown, operation: string): "refused" | null {
    if (operation === "finish source file" || !(thrown instanceof FTPError)) return null;
    return thrown.code === 550 || thrown.code === 553 ? "refused" : null;
  }

  close(): Promise<void> {
    return this.#connections.close();
  }
}

/** Pure-FTPd ends a listing of more files than its limit in this way. */
function isTruncated(closing: string): boolean {
  return /\btruncated\b/i.test(closing);
}

function entryOf(path: string, item: ListedItem): FileEntry {
  return { path, size: item.size, mtime: item.changed };
}

/**
 * A stream into the receiver that remembers its own failure, which basic-ftp would report as one of the
 * connection.
 */
function sinkOf(receiver: Receiver): { stream: Writable; failure(): unknown; atRest(): Promise<void> } {
  let failure: unknown = null;
  let writing: Promise<void> = Promise.resolve();
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      writing = receiver.write(chunk).then(
        () => done(),
        (thrown: unknown) => {
          failure = thrown;
          done(thrown instanceof Error ? thrown : new Error(wordsOf(thrown)));
        },
      );
    },
  });
  return { stream, failure: () => failure, atRest: () => writing };
}

// Times of files on FTP servers without MLSD. LIST has times by the minute, or by the day for old files, and
// changes their format as a file ages; a file that is rewritten within that minute would look unchanged. So
// MDTM (RFC 3659, section 3) is requested for each file that LIST shows differently, and its result is kept
// while LIST shows the same.

interface Known {
  /** Size and time in the format of LIST. */
  readonly listed: string;
  readonly exact: string;
  readonly sinceMs: number;
  seenIn: number;
}

/** A connection, and the drop's folder on its server. */
interface FtpPlace {
  readonly client: Client;
  readonly root: string;
}

class FtpTimes {
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

// `headgate check` at an FTP drop.

function ftpSteps(options: FtpOptions, connections: FtpConnections): ProbeSteps {
  return {
    greet: (signal) =>
      connections.use(signal, async (link) => {
        const system = await link.client.sendIgnoringError("SYST");
        return [
          serverFinding(options, link, system.code === 215 ? system.message : ""),
          ...certificateFindings(link),
          ...featureFindings(options, link),
        ];
      }),
    transferred: (signal) => connections.use(signal, async ({ client }) => dataFindings(client.dataSeen)),
  };
}

function serverFinding(options: FtpOptions, { greeting }: FtpLink, system: string): ProbeFinding {
  const { host, username, tls } = options;
  const said = saidWords([saidWords(greeting, 60), saidWords(system, 40)].filter(Boolean).join("; "));
  const login = `logged in to ${host}:${portOf(options)} as ${username}`;
  const finding = { about: "server", what: `${said === "" ? "" : `“${said}”, `}${login}` } as const;
  if (tls !== "none") return { level: "ok", ...finding, what: `${finding.what} with ${tls} TLS` };
  return {
    level: "warning",
    ...finding,
    what: `${finding.what} without encryption`,
    hint: "The password goes over the network readably; set `tls: explicit` if the server can.",
  };
}

function certificateFindings({ client }: FtpLink): readonly ProbeFinding[] {
  const { socket } = client.ftp;
  if (!(socket instanceof TLSSocket)) return [];
  const { subject, issuer, valid_to } = socket.getPeerCertificate();
  const name = (of: typeof subject | undefined) => one(of?.CN) ?? one(of?.O) ?? "an unnamed subject";
  const facts = {
    subject: name(subject),
    issuer: name(issuer),
    validUntilMs: Date.parse(valid_to),
  };
  return [certificateFinding(facts, systemClock.now().epochMilliseconds)];
}

function one(names: string | string[] | undefined): string | undefined {
  return Array.isArray(names) ? names[0] : names;
}

function featureFindings({ tls, listing }: FtpOptions, { features }: FtpLink): readonly ProbeFinding[] {
  const offered = FEATURES.filter((name) => features.has(name));
  const missing = FEATURES.filter((name) => !features.has(name));
  // Servers list AUTH once for each mechanism, or with all of them.
  const auth = features.has("AUTH") ? ["AUTH TLS"] : [];
  const lacks = missing.length === 0 ? "" : `; not ${missing.join(", ")}`;
  const what = `${[...offered, ...auth].join(", ") || "none is listed"}${lacks}`;
  const findings: ProbeFinding[] = [];
  const blunt = !features.has("MLST") && (!features.has("MDTM") || listing === "list");
  findings.push(
    blunt
      ? {
          level: "warning",
          about: "features",
          what,
          hint:
            "Times have a precision of a minute at best here: a file that is rewritten within its minute with the " +
            "same length looks unchanged. Let senders use new names, temporary names or done-files.",
        }
      : { level: "ok", about: "features", what },
  );
  if (tls === "none" && auth.length > 0)
    findings.push({
      level: "ok",
      about: "encryption",
      what: "the server offers AUTH TLS, and it is not used",
      hint: "Set `tls: explicit`.",
    });
  return findings;
}

function dataFindings(seen: DataSeen | null): readonly ProbeFinding[] {
  if (seen === null) return [];
  const { way, announced, used, reused, protocol } = seen;
  const replaced = announced !== null && announced !== used;
  const passive: ProbeFinding = {
    level: "ok",
    about: "passive",
    what:
      announced === null
        ? `${way}: data connections go to ${used}, as the control connection does`
        : replaced
          ? `${way} announces ${announced}, which is replaced by ${used}, the address of the control connection`
          : `${way} announces ${announced}, and data connections go there`,
    ...(replaced
      ? {
          hint: "The server announces its inner address. That is fine as long as `passiveAddress` is control.",
        }
      : {}),
  };
  if (reused === null) return [passive];
  const session: ProbeFinding = {
    level: "ok",
    about: "TLS session",
    what: `data connections ${reused ? "resume the TLS session" : "use a TLS session of their own"} (${protocol})`,
  };
  return [passive, session];
}

interface FtpTrialFacts {
  readonly connections: FtpConnections;
  /** As the drop reports it. */
  exists(path: string, signal: AbortSignal): Promise<boolean>;
}

function ftpTrial({ connections, exists }: FtpTrialFacts, signal: AbortSignal): TrialFiles {
  const ask = <T>(work: (link: FtpLink) => Promise<T>) => connections.use(signal, work);
  const full = (link: Pick<FtpLink, "root">, path: string) => `${link.root.replace(/\/$/, "")}/${path}`;
  const send = (command: string, path: string) =>
    ask(async (link) => void (await link.client.send(`${command} ${full(link, path)}`)));
  return {
    write: (path, content) =>
      ask(async (link) => {
        await link.client.uploadFrom(Readable.from([Buffer.from(content)]), full(link, path));
      }),
    modified: (path) => ask((link) => modified(link, full(link, path))),
    exists: (path) => exists(path, signal),
    isFolder: (path) =>
      ask(async (link) => (await link.client.sendIgnoringError(`CWD ${full(link, path)}`)).code < 400),
    makeFolder: (path) => send("MKD", path),
    removeFolder: (path) => send("RMD", path),
    move: (from, to) => ask(async (link) => void (await link.client.rename(full(link, from), full(link, to)))),
    remove: (path) => send("DELE", path),
    isRefusal: (thrown) =>
      thrown instanceof FTPError &&
      (NOT_IMPLEMENTED.includes(thrown.code) ||
        // The same code means missing and forbidden, so the text decides.
        /denied|not permitted|not allowed|forbidden|prohibited|read[- ]?only/i.test(wordsOf(thrown))),
  };
}

async function modified(
  { client, features }: FtpLink,
  path: string,
): Promise<{ readonly atMs: number; readonly precisionMs: number } | null> {
  const response = features.has("MDTM")
    ? await client.sendIgnoringError(`MDTM ${path}`)
    : await client.sendIgnoringError(`MLST ${path}`);
  if (response.code >= 400) return null;
  const facts = response.message.split(/\r?\n/).find((line) => line.startsWith(" "));
  const stamp =
    /^213[ -]+(\d{14}(?:\.\d+)?)/.exec(response.message)?.[1] ??
    (facts === undefined ? undefined : parseMlsxLine(facts.slice(1))?.changed);
  const atMs = stamp === undefined ? null : mlsdTimeMs(stamp);
  return atMs === null || stamp === undefined ? null : { atMs, precisionMs: stamp.includes(".") ? 1 : 1000 };
}
