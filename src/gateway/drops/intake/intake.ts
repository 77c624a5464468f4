/**
 * The gateway's own HTTP intake as a drop: senders push and upload to it as they would to the service, and
 * each body becomes a file that is complete at once. It works while the service is unavailable.
 * `body-store.ts` defines when a body is durable.
 */
import { join } from "node:path";
import Fastify, { type FastifyInstance } from "fastify";
import { type Clock, systemClock } from "#core/clock.ts";
import { limitConnections, serverLimits } from "#core/connection-limits.ts";
import { RejectedError, wordsOf } from "#core/errors.ts";
import { faultPoint } from "#core/faults.ts";
import { endConnectionsOnClose } from "#core/http-drain.ts";
import { listenOrExplain } from "#core/listen.ts";
import type { Logger } from "#core/log.ts";
import { resultOf, settleEach } from "#core/settled.ts";
import { trustedProxies } from "#core/sign-in/options.ts";
import type { FileEntry, SharedIntake } from "../../model.ts";
import type { ArchiveClearing } from "../archive-cleanup.ts";
import type { Drop, FinishPlanned, OnFolder, ProbeFinding, Provenance } from "../drop.ts";
import type { IntakeOptions } from "../options.ts";
import { insideDrop } from "../paths.ts";
import type { FilePut, PutFile } from "../put-file.ts";
import { interrupted } from "../refusals.ts";
import type { BodyStore } from "./body-store.ts";
import { Bodies } from "./own-body-store.ts";
import { checkTls, probeIntake, probeShared, probeWaiting } from "./probe.ts";
import { installProblems } from "./problems.ts";
import { putBody } from "./put.ts";
import type { Receipt } from "./receipts.ts";
import { pushRoutes, type RouteParts, storageRoutes, type TokenRefusal } from "./routes.ts";
import { People } from "./senders.ts";
import { SharedBodyStore, waitingReceipts } from "./shared-body-store.ts";
import { tokenRoutes } from "./token-route.ts";

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
