/**
 * The connections of an FTP drop. A connection does one thing at a time, so there are a few, each lent to one
 * caller.
 */
import { isIP } from "node:net";
import { FTPError } from "basic-ftp";
import { ConfigError, HeadgateError, systemCode, TransientError, wordsOf } from "#core/errors.ts";
import type { FtpOptions } from "../options.ts";
import { interrupted } from "../refusals.ts";
import { FtpClient } from "./client.ts";

export interface FtpLink {
  readonly client: FtpClient;
  /** Absolute path of the drop's folder on the server. */
  readonly root: string;
  /** The server offers MLSD and MLST. */
  readonly machineListing: boolean;
  /** The server offers MDTM, which has times by the second. */
  readonly fileTimes: boolean;
  /** The server offers REST for downloads. */
  readonly restart: boolean;
  /** The greeting and the FEAT response. */
  readonly greeting: string;
  readonly features: ReadonlyMap<string, string>;
}

/** A borrowed connection. */
export interface Lease {
  readonly link: FtpLink;
  /** Returns it for other callers. */
  end(): void;
  /**
   * Returns it after a fault, with the error to throw. After anything but a plain refusal the connection is
   * closed.
   */
  fail(thrown: unknown): unknown;
}

export class FtpConnections {
  readonly #options: FtpOptions;
  readonly #idle: FtpLink[] = [];
  readonly #waiting: (() => void)[] = [];
  readonly #lent = new Set<FtpLink>();
  readonly #opening = new Set<FtpClient>();
  #lentCount = 0;
  #idleTimer: NodeJS.Timeout | null = null;
  #closed = false;

  constructor(options: FtpOptions) {
    this.#options = options;
  }

  /** Lends a connection for some work. */
  async use<T>(signal: AbortSignal, work: (link: FtpLink) => Promise<T>): Promise<T> {
    const lease = await this.lend(signal);
    try {
      const result = await work(lease.link);
      lease.end();
      return result;
    } catch (thrown) {
      throw lease.fail(thrown);
    }
  }

  /** Waits for a free connection. An aborted signal closes it. */
  async lend(signal: AbortSignal): Promise<Lease> {
    await this.#turn(signal);
    try {
      const link = this.#takeIdle() ?? (await this.#open(signal));
      return this.#leaseOf(link, signal);
    } catch (thrown) {
      this.#returnTurn();
      throw this.#interruption(signal, thrown);
    }
  }

  #leaseOf(link: FtpLink, signal: AbortSignal): Lease {
    this.#lent.add(link);
    const stop = () => link.client.close();
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    let lent = true;
    const giveBack = (intact: boolean) => {
      if (!lent) return;
      lent = false;
      signal.removeEventListener("abort", stop);
      this.#lent.delete(link);
      if (intact) this.#keep(link);
      else link.client.close();
      this.#returnTurn();
    };
    return {
      link,
      end: () => giveBack(true),
      fail: (thrown) => {
        giveBack(thrown instanceof FTPError || isOurs(thrown));
        return this.#interruption(signal, thrown);
      },
    };
  }

  #interruption(signal: AbortSignal, thrown: unknown): unknown {
    if (!signal.aborted && !this.#closed) return thrown;
    return interrupted(this.#options.name, "use FTP connection", thrown);
  }

  #returnTurn(): void {
    this.#lentCount -= 1;
    this.#waiting.shift()?.();
    if (this.#lentCount === 0) this.#closeWhenIdle();
  }

  async close(): Promise<void> {
    this.#closed = true;
    if (this.#idleTimer !== null) clearTimeout(this.#idleTimer);
    for (const link of [...this.#idle.splice(0), ...this.#lent]) link.client.close();
    for (const client of this.#opening) client.close();
    for (const wake of this.#waiting.splice(0)) wake();
  }

  async #turn(signal: AbortSignal): Promise<void> {
    while (!this.#closed && !signal.aborted && this.#lentCount >= this.#options.maxConnections) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#waiting.push(resolve);
      signal.addEventListener("abort", () => resolve(), { once: true });
      await promise;
      const at = this.#waiting.indexOf(resolve);
      if (at >= 0) this.#waiting.splice(at, 1);
    }
    if (this.#closed || signal.aborted) {
      this.#waiting.shift()?.();
      throw interrupted(this.#options.name, "use FTP connection", signal.reason);
    }
    this.#lentCount += 1;
    if (this.#idleTimer !== null) clearTimeout(this.#idleTimer);
  }

  #takeIdle(): FtpLink | null {
    for (let link = this.#idle.pop(); link !== undefined; link = this.#idle.pop()) {
      if (!link.client.closed) return link;
    }
    return null;
  }

  #keep(link: FtpLink): void {
    if (this.#closed || link.client.closed) link.client.close();
    else this.#idle.push(link);
  }

  #closeWhenIdle(): void {
    if (this.#idleTimer !== null) clearTimeout(this.#idleTimer);
    this.#idleTimer = setTimeout(() => {
      for (const link of this.#idle.splice(0)) link.client.close();
    }, this.#options.timeouts.idle);
    this.#idleTimer.unref();
  }

  async #open(signal: AbortSignal): Promise<FtpLink> {
    const options = this.#options;
    if (this.#closed) throw interrupted(options.name, "connect to FTP server");
    const client = new FtpClient(options);
    this.#opening.add(client);
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      client.close();
    }, options.timeouts.connect);
    const stop = () => client.close();
    signal.addEventListener("abort", stop, { once: true });
    try {
      const { message: greeting } = await client.access({
        host: options.host,
        port: portOf(options),
        user: options.username,
        password: options.password,
        secure: options.tls === "none" ? false : options.tls === "explicit" ? true : "implicit",
        ...(options.tls === "none" ? {} : { secureOptions: tlsOptions(options) }),
      });
      if (this.#closed) throw interrupted(options.name, "connect to FTP server");
      // The library requests UTF-8 in any case.
      if (options.names === "latin-1") await client.sendIgnoringError("OPTS UTF8 OFF");
      const features = await client.features();
      const machineListing = features.has("MLST");
      return {
        client,
        root: await rootOf(options, client),
        machineListing,
        fileTimes: machineListing || features.has("MDTM"),
        restart: features.has("REST"),
        greeting,
        features,
      };
    } catch (thrown) {
      client.close();
      const cause = late ? new Error(`not connected within ${options.timeouts.connect} ms`) : thrown;
      throw connectFailure(options, cause);
    } finally {
      this.#opening.delete(client);
      clearTimeout(timer);
      signal.removeEventListener("abort", stop);
    }
  }
}

export function portOf(options: FtpOptions): number {
  return options.port ?? (options.tls === "implicit" ? 990 : 21);
}

async function rootOf(options: FtpOptions, client: FtpClient): Promise<string> {
  try {
    await client.cd(options.path);
  } catch (thrown) {
    if (!(thrown instanceof FTPError)) throw thrown;
    throw new ConfigError("HG-DROP-002", {
      operation: "open drop",
      subject: options.name,
      message:
        `the folder ${options.path} of drop ${options.name} on ${options.host} cannot be entered: ` +
        `${thrown.message}`,
      cause: thrown,
    });
  }
  return client.pwd();
}

function tlsOptions(options: FtpOptions) {
  return {
    host: options.host,
    ...(isIP(options.host) === 0 ? { servername: options.host } : {}),
    ...(options.ca === undefined ? {} : { ca: options.ca }),
    ...(options.clientCertificate === undefined
      ? {}
      : { cert: options.clientCertificate.certificate, key: options.clientCertificate.key }),
    ...(options.clientCertificate?.passphrase === undefined
      ? {}
      : { passphrase: options.clientCertificate.passphrase }),
  };
}

function isOurs(thrown: unknown): boolean {
  return thrown instanceof HeadgateError && !(thrown instanceof TransientError);
}

function connectFailure(options: FtpOptions, thrown: unknown): unknown {
  if (thrown instanceof HeadgateError) return thrown;
  const server = `${options.host}:${portOf(options)}`;
  const facts = { operation: "connect to FTP server", subject: options.name, cause: thrown };
  if (thrown instanceof FTPError && (thrown.code === 530 || thrown.code === 430))
    return new ConfigError("HG-DROP-003", {
      ...facts,
      message:
        `the server ${server} of drop ${options.name} refuses the login of ${options.username}: ` + `${thrown.message}`,
      hint: "Check the drop's `username` and `password`.",
    });
  if (/CERT|SIGNATURE|UNABLE_TO_(GET|VERIFY)|ALTNAME/.test(systemCode(thrown) ?? ""))
    return new ConfigError("HG-DROP-011", {
      ...facts,
      message: `the TLS certificate of ${server} (drop ${options.name}) is not trusted: ${wordsOf(thrown)}`,
    });
  return new TransientError("HG-DROP-001", {
    ...facts,
    message: `the FTP server ${server} of drop ${options.name} cannot be reached: ${wordsOf(thrown)}`,
  });
}
