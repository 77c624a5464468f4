/**
 * The gateway's own HTTP intake as a drop: senders push and upload to it as they would to the service, and
 * each body becomes a file that is complete at once. It works while the service is unavailable.
 * `body-store.ts` defines when a body is durable.
 */

import { X509Certificate } from "node:crypto";
import { existsSync } from "node:fs";
import { access, constants, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { createSecureContext } from "node:tls";
import Fastify, { type FastifyInstance } from "fastify";
import { type Clock, systemClock } from "#core/clock.ts";
import { limitConnections, serverLimits } from "#core/connection-limits.ts";
import { ConfigError, HeadgateError, RejectedError, systemCode, wordsOf } from "#core/errors.ts";
import { faultPoint } from "#core/faults.ts";
import { endConnectionsOnClose } from "#core/http-drain.ts";
import type { Logger } from "#core/log.ts";
import { resultOf, settleEach } from "#core/promises.ts";
import { trustedProxies } from "#core/sign-in/options.ts";
import { listenOrExplain } from "#core/start-fault.ts";
import { SCOPES } from "#wire/token.ts";
import { accountRefused, serveTokens, type TokenIssuer, tooMany } from "#wire/token-endpoint.ts";
import type { FileEntry, SharedIntake } from "../../model.ts";
import type { Drop, FinishPlanned, OnFolder, ProbeFinding, Provenance } from "../drop.ts";
import type { IntakeOptions } from "../options.ts";
import { type ArchiveClearing, insideDrop } from "../paths.ts";
import { certificateFinding } from "../probe-findings.ts";
import { type FilePut, nameFault, type PutFile, refusedPut } from "../put-file.ts";
import { interrupted } from "../refusals.ts";
import { type BodyStore, BodyTooLarge, type Received } from "./body-store.ts";
import type { IntakeUser } from "./options.ts";
import { Bodies } from "./own-body-store.ts";
import { RECEIPTS_FILE, type Receipt, Receipts } from "./receipts.ts";
import { installProblems, pushRoutes, type RouteParts, storageRoutes, type TokenRefusal } from "./routes.ts";
import { People, TooManyAttempts } from "./senders.ts";
import { SharedBodyStore, waitingReceipts } from "./shared-body-store.ts";

/** The parts of the gateway that the intake uses. */
export interface IntakeFacts {
  /** Root of the spool. */
  readonly spool: string;
  /** The store of gateways that share a ledger; null for a single gateway. */
  readonly shared: SharedIntake | null;
  readonly clock?: Clock;
  /** Whether the spool accepts no more files. Default: it always accepts them. */
  isFull?(): Promise<boolean>;
  /** Service of users that name none. */
  readonly defaultService: string;
  accountOf(service: string): string | undefined;
  /** Why no trigger claims files of this drop under this guid for this service; null when one does. */
  refusalOf(token: string, service: string, drop: string): TokenRefusal | null;
}

const FILE_NAME_BYTES_MAX = 255;
const FORGET_EVERY_MS = 3_600_000;
/** Time for running requests to end when the gateway stops. */
const CLOSE_WAIT_MS = 3_000;

export class IntakeDrop implements Drop {
  readonly kind = "http";
  readonly name: string;
  readonly #options: IntakeOptions;
  readonly #facts: IntakeFacts;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #root: string;
  readonly #watching = new Set<() => void>();
  readonly #closing = new AbortController();
  #closed: Promise<void> | null = null;
  #opening: Promise<BodyStore> | null = null;
  #app: FastifyInstance | null = null;
  #forgetting: NodeJS.Timeout | undefined;

  constructor(options: IntakeOptions, facts: IntakeFacts, log: Logger) {
    this.name = options.name;
    this.#options = options;
    this.#facts = facts;
    this.#clock = facts.clock ?? systemClock;
    this.#log = log;
    this.#root = join(facts.spool, "intake", options.name);
  }

  async open(): Promise<string> {
    checkTls(this.#options);
    this.#app = this.#buildServer(await this.#store());
    const url = await listenOrExplain(this.#app, this.#options.listen, `listen of the drop ${this.name}`);
    this.#log.info({ drop: this.name, url }, "the HTTP intake listens");
    return url;
  }

  async *list(signal: AbortSignal, onFolder?: OnFolder): AsyncGenerator<readonly FileEntry[]> {
    this.#refuseEnded("list drop", signal);
    for await (const { path, size, mtime } of (await this.#store()).waiting(signal)) yield [{ path, size, mtime }];
    onFolder?.("", []);
  }

  async stat(path: string, signal: AbortSignal): Promise<FileEntry | null> {
    insideDrop(this.name, path);
    this.#refuseEnded("stat file", signal);
    return await (await this.#store()).stat(path, signal);
  }

  async fetch(entries: readonly FileEntry[], destination: string, signal: AbortSignal) {
    const store = await this.#store();
    const fetched = await store.fetch(entries, destination, signal);
    return await settleEach(entries, async ({ path }, at) => {
      const file = resultOf(fetched[at]);
      this.#refuseEnded("fetch file", signal);
      const receipt = await store.byPath(path);
      if (receipt === null || receipt.sha256 === file.sha256) return file;
      throw new RejectedError("HG-INTK-004", { operation: "fetch body", subject: path });
    });
  }

  async finish(planned: readonly FinishPlanned[], signal: AbortSignal) {
    return await (await this.#store()).finish(planned, signal);
  }

  async clearArchive(clearing: ArchiveClearing, signal: AbortSignal): Promise<number> {
    return await (await this.#store()).clearArchive(clearing, signal);
  }

  async provenance(path: string): Promise<Provenance | null> {
    const receipt = await (await this.#store()).byPath(path);
    return receipt === null ? null : provenanceOf(receipt, this.#options);
  }

  modifiedMs(entry: FileEntry): number {
    return Number(BigInt(entry.mtime) / 1_000_000n);
  }

  async probe(
    signal: AbortSignal,
    onEntry: (entry: FileEntry, provenance?: Provenance) => void = () => undefined,
  ): Promise<readonly ProbeFinding[]> {
    this.#refuseEnded("check drop", signal);
    const { shared, defaultService } = this.#facts;
    const findings = await probeIntake(this.#options, this.#root, defaultService);
    const onReceipt = (receipt: Receipt) => {
      const { path, size, mtime } = receipt;
      onEntry({ path, size, mtime }, provenanceOf(receipt, this.#options));
    };
    const waiting =
      shared === null
        ? probeWaiting(this.#root, onReceipt)
        : await probeShared(waitingReceipts(shared, this.name, signal), onReceipt);
    return [...findings, waiting];
  }

  async put(file: PutFile): Promise<FilePut> {
    const bodies = await this.#store();
    const facts = this.#facts;
    const nowMs = this.#clock.now().epochMilliseconds;
    const isFull = async () => (await facts.isFull?.()) ?? false;
    const put = await putBody(file, { options: this.#options, bodies, service: facts.defaultService, nowMs, isFull });
    for (const notify of this.#watching) notify();
    return put;
  }

  watch(onChange: () => void): () => Promise<void> {
    this.#watching.add(onChange);
    const others = this.#store().then(
      (bodies) => bodies.watch(onChange),
      () => null, // The next listing reports the fault.
    );
    return async () => {
      this.#watching.delete(onChange);
      await (await others)?.();
    };
  }

  close(): Promise<void> {
    this.#closing.abort();
    this.#closed ??= this.#end();
    return this.#closed;
  }

  async #end(): Promise<void> {
    clearInterval(this.#forgetting);
    const app = this.#app;
    this.#app = null;
    if (app !== null) {
      const timer = setTimeout(() => app.server.closeAllConnections(), CLOSE_WAIT_MS);
      await app.close();
      clearTimeout(timer);
    }
    const bodies = await this.#opening?.catch(() => null); // The caller that opened it handled the fault.
    await bodies?.close();
  }

  #refuseEnded(operation: string, signal: AbortSignal): void {
    if (signal.aborted || this.#closing.signal.aborted) throw interrupted(this.name, operation, signal.reason);
  }

  #store(): Promise<BodyStore> {
    this.#opening ??= this.#openBodyStore().then((bodies) => {
      const forget = () => {
        bodies.forget(this.#clock.now().epochMilliseconds - this.#options.repeats).catch((thrown: unknown) => {
          this.#log.warn({ drop: this.name, reason: wordsOf(thrown) }, "old receipts stay for now");
        });
      };
      forget();
      this.#forgetting = setInterval(forget, FORGET_EVERY_MS).unref();
      return bodies;
    });
    return this.#opening;
  }

  #openBodyStore(): Promise<BodyStore> {
    const { shared } = this.#facts;
    return shared === null
      ? Bodies.open(this.name, this.#root, this.#log)
      : SharedBodyStore.open(this.name, this.#root, shared, this.#clock);
  }

  #buildServer(bodies: BodyStore): FastifyInstance {
    const { tls, http } = this.#options;
    const common = {
      bodyLimit: this.#options.limits.body,
      exposeHeadRoutes: false,
      trustProxy: trustedProxies(this.#options.trustProxy),
      forceCloseConnections: "idle" as const,
      routerOptions: { ignoreTrailingSlash: true, caseSensitive: false, maxParamLength: 1_000 },
    };
    const limits = serverLimits(http);
    const https = { ...tls, ...limits, handshakeTimeout: http.headers };
    const app = (
      tls === undefined ? Fastify({ ...common, http: limits }) : Fastify({ ...common, https })
    ) as FastifyInstance;
    endConnectionsOnClose(app, CLOSE_WAIT_MS);
    limitConnections(app, http, this.#log);
    const facts = this.#facts;
    const people = new People(this.#options, bodies.secret, this.#clock);
    const parts: RouteParts = {
      bodies,
      people,
      limits: this.#options.limits,
      clock: this.#clock,
      log: this.#log,
      isFull: async () => (await facts.isFull?.()) ?? false,
      serviceOf: (user) => user.service ?? facts.defaultService,
      refusalOf: (token, service) => facts.refusalOf(token, service, this.name),
      onTaken: () => {
        for (const notify of this.#watching) notify();
      },
    };
    installProblems(app, this.#log);
    app.get("/health", () => ({ status: "ok" }));
    app.addHook("onResponse", async (_request, reply) => {
      if (reply.statusCode === 200) faultPoint("intake.answered");
    });
    const accountOf = (service: string | undefined) => facts.accountOf(service ?? facts.defaultService);
    void app.register((scope) => tokenRoutes(scope, { people, accountOf, log: this.#log }));
    void app.register((scope) => pushRoutes(scope, parts));
    void app.register((scope) => storageRoutes(scope, parts));
    return app;
  }
}

function provenanceOf(receipt: Receipt, { users }: IntakeOptions): Provenance {
  const { route, service, token } = receipt;
  const sender = `${receipt.username}, by HTTP (receipt ${receipt.id})`;
  const common = { service, operationPrefix: receipt.operationId ?? String(receipt.id), sender };
  if (route === "storage") return { ...common, ingestionType: "UploadInStorage" };
  if (route === "generic") return { ...common, ingestionType: "SendViaHttp", token: token ?? "" };
  const user = users.find(({ username }) => username === receipt.username);
  const zone = user?.timeZone === undefined ? {} : { timeZone: user.timeZone };
  return { ...common, ingestionType: "SendViaHttp", standardBody: { ...zone, dst: user?.dst ?? "later" } };
}

// The token endpoint of an intake: users and clients of the configuration.

interface TokenParts {
  readonly people: People;
  readonly log: Logger;
  /**
   * The account that a service of the configuration delivers into; undefined for the default account of its
   * user.
   */
  accountOf(service: string | undefined): string | undefined;
}

function tokenRoutes(app: FastifyInstance, { people, log, accountOf }: TokenParts): Promise<void> {
  const issuer: TokenIssuer<string, IntakeUser> = {
    client: async (id, secret, address) => slowed(() => (people.isClient(id, secret, address) ? id : null)),
    scopesOf: () => SCOPES,
    user: async (name, password, address) => slowed(() => people.signIn(name, password, address)),
    issue: async ({ client, user, scopes, account }) => {
      // The data goes into the account of the service, so a token for another one would mislead its owner.
      const own = accountOf(user.service);
      if (account !== null && own !== undefined && account !== own) throw accountRefused(account);
      return await people.issue({ username: user.username, scopes, clientId: client });
    },
  };
  return serveTokens(app, issuer, { log });
}

function slowed<T>(check: () => T): T {
  try {
    return check();
  } catch (thrown) {
    if (thrown instanceof TooManyAttempts) throw tooMany(thrown.message, thrown.retryAfterSec ?? 1);
    throw thrown;
  }
}

// Puts a file into an HTTP intake by a person's command, as if a sender had uploaded it to the storage route.

interface PutFacts {
  readonly options: Pick<IntakeOptions, "name" | "limits">;
  readonly bodies: BodyStore;
  readonly service: string;
  readonly nowMs: number;
  isFull(): Promise<boolean>;
}

/** Durable when it resolves. Throws `RejectedError`; no bytes remain then. */
async function putBody({ name, content, by }: PutFile, facts: PutFacts): Promise<FilePut> {
  const { options, bodies, service } = facts;
  const subject = `${options.name}: ${name}`;
  const fault = nameFault(name);
  if (fault !== null) throw refusedPut(subject, fault, "Choose another name.");
  if (Buffer.byteLength(name) > FILE_NAME_BYTES_MAX)
    throw refusedPut(subject, `the name has more than ${FILE_NAME_BYTES_MAX} bytes`, "Choose a shorter name.");
  if ((await bodies.waitingBytes()) >= options.limits.backlog || (await facts.isFull()))
    throw refusedPut(subject, "too much waits to be delivered", "Send it again when the service is available.");
  const received = await receive(Readable.from(content), subject, facts);
  const path = `storage/${received.id}/${name}`;
  await bodies.publish(received, {
    ...{ id: received.id, path, size: received.size, mtime: received.mtime, sha256: received.sha256 },
    ...{ route: "storage", username: `${by} (console)`, service, operationId: null, idempotencyKey: null, token: null },
    details: JSON.stringify({}),
    answer: JSON.stringify(received.id),
  });
  return { path, bytes: received.size };
}

async function receive(stream: Readable, subject: string, facts: PutFacts): Promise<Received> {
  const { body: bytesMax } = facts.options.limits;
  try {
    return await facts.bodies.receive(stream, facts.nowMs, bytesMax);
  } catch (thrown) {
    if (!(thrown instanceof BodyTooLarge)) throw thrown;
    throw refusedPut(subject, `it is larger than ${bytesMax} bytes`, "The intake's `limits.body` sets this.");
  }
}

// `headgate check` at an HTTP intake. A running gateway is not disturbed: its received bodies are only read.

/** `root` is the intake's folder in the spool. */
async function probeIntake(
  options: IntakeOptions,
  root: string,
  defaultService: string,
): Promise<readonly ProbeFinding[]> {
  try {
    checkTls(options);
    await mkdir(root, { recursive: true });
    await access(root, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (thrown) {
    const hint = thrown instanceof HeadgateError ? thrown.hint : "Check `spool.path` and the rights of this user.";
    return [{ level: "failed", about: "spool", what: wordsOf(thrown), hint }];
  }
  return [await addressFinding(options), ...securityFindings(options), ...userFindings(options, defaultService)];
}

function checkTls({ name, tls }: IntakeOptions): void {
  if (tls === undefined) return;
  try {
    createSecureContext(tls);
  } catch (cause) {
    throw new ConfigError("HG-INTK-002", { operation: "open intake", subject: name, cause });
  }
}

/** Unfinished bodies of an intake, beside a gateway that may be running. */
function withReceipts<T>(root: string, read: (receipts: Receipts) => T): T | null {
  const path = join(root, RECEIPTS_FILE);
  if (!existsSync(path)) return null;
  const receipts = Receipts.toRead(path);
  try {
    return read(receipts);
  } finally {
    receipts.close();
  }
}

/** Lists the bodies of the intake. */
function probeWaiting(root: string, onReceipt: (receipt: Receipt) => void): ProbeFinding {
  try {
    const count = withReceipts(root, (receipts) => {
      let waiting = 0;
      for (const receipt of receipts.waiting()) {
        waiting += 1;
        onReceipt(receipt);
      }
      return waiting;
    });
    if (count === null) return { level: "ok", about: "listing", what: "nothing was received yet" };
    return waitingFinding(count);
  } catch (thrown) {
    return unreadable(thrown, "Run the check as the user of the gateway.");
  }
}

/** Lists the bodies of an intake that stores them in the ledger. */
async function probeShared(
  receipts: AsyncIterable<Receipt>,
  onReceipt: (receipt: Receipt) => void,
): Promise<ProbeFinding> {
  try {
    let waiting = 0;
    for await (const receipt of receipts) {
      waiting += 1;
      onReceipt(receipt);
    }
    return waitingFinding(waiting);
  } catch (thrown) {
    return unreadable(thrown, "Check `ledger`, and that its server can be reached from here.");
  }
}

function waitingFinding(count: number): ProbeFinding {
  return { level: "ok", about: "listing", what: `${count} received bodies wait to be delivered` };
}

function unreadable(thrown: unknown, hint: string): ProbeFinding {
  const what = `the received bodies cannot be read: ${wordsOf(thrown)}`;
  return { level: "warning", about: "listing", what, hint };
}

async function addressFinding({ listen }: IntakeOptions): Promise<ProbeFinding> {
  const app = Fastify();
  try {
    await listenOrExplain(app, listen, "listen");
    return { level: "ok", about: "address", what: `${listen} is available` };
  } catch (thrown) {
    const taken = systemCode(thrown) === "EADDRINUSE";
    const hint = taken
      ? "If the running gateway uses it, this is correct."
      : "Correct `listen`: an address of this machine and a port that this user may use.";
    return { level: taken ? "warning" : "failed", about: "address", what: wordsOf(thrown), hint };
  } finally {
    await app.close();
  }
}

function securityFindings({ tls, listen }: IntakeOptions): readonly ProbeFinding[] {
  if (tls !== undefined) {
    const certificate = new X509Certificate(tls.cert);
    const facts = {
      subject: nameOf(certificate.subject),
      issuer: nameOf(certificate.issuer),
      validUntilMs: Date.parse(certificate.validTo),
    };
    return [certificateFinding(facts, systemClock.now().epochMilliseconds)];
  }
  if (/^(?:127\.|localhost|\[?::1)/.test(listen))
    return [{ level: "ok", about: "encryption", what: "none, on the loopback address" }];
  return [
    {
      level: "warning",
      about: "encryption",
      what: "passwords and readings travel readably: there is no tls",
      hint: "Set `tls.key` and `tls.cert`, or listen on loopback behind a proxy that has them.",
    },
  ];
}

/** The common name of a distinguished name with one part per line; the whole name when it has none. */
function nameOf(distinguished: string): string {
  return /^CN=(.*)$/m.exec(distinguished)?.[1] ?? distinguished.replaceAll("\n", ", ");
}

function userFindings({ users, clients }: IntakeOptions, defaultService: string): readonly ProbeFinding[] {
  const words = users.map(
    ({ username, rights, service }) =>
      `${username} (${rights.join(" and ")} to ${service ?? (defaultService === "" ? "the service" : defaultService)})`,
  );
  const withoutZone = users.filter(({ rights, timeZone }) => rights.includes("push") && timeZone === undefined);
  const findings: ProbeFinding[] = [
    {
      level: "ok",
      about: "users",
      what: `${words.join(", ")}${clients.length === 0 ? "" : `; ${clients.length} OAuth clients`}`,
    },
  ];
  if (withoutZone.length > 0)
    findings.push({
      level: "ok",
      about: "time zone",
      what:
        `none for ${withoutZone.map(({ username }) => username).join(", ")}: ` +
        "a date without zone in a pushed body is quarantined",
      hint: "Set `timeZone` of the user when its device sends local times.",
    });
  return findings;
}
