/**
 * The gateway's own HTTP intake as a drop: senders push and upload to it as they would to the service, and each body becomes a
 * file that is complete when it is there. It works while the service is away. See `bodies.ts` for what makes an answer true.
 */
import { randomBytes } from "node:crypto";
import { rmdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import Fastify, { type FastifyInstance } from "fastify";
import type { FetchedFile, FileEntry, FinishPlan, FinishResult } from "../../model.ts";
import { type Clock, systemClock } from "../../support/clock.ts";
import { systemCode, wordsOf } from "../../support/errors.ts";
import { faultPoint } from "../../support/faults.ts";
import { listenOrExplain } from "../../support/listen.ts";
import type { Logger } from "../../support/log.ts";
import type { Drop, ProbeFinding, Provenance } from "../drop.ts";
import { LocalDrop } from "../local.ts";
import { type IntakeOptions, localOptions } from "../options.ts";
import { Bodies } from "./bodies.ts";
import { People, SECRET_BYTES } from "./people.ts";
import { checkTls, probeIntake, probeLying } from "./probing.ts";
import { installProblems } from "./problems.ts";
import type { Receipt } from "./receipts.ts";
import { pushRoutes, type RouteParts, storageRoutes } from "./routes.ts";
import { tokenRoutes } from "./token-route.ts";

/** What the intake asks of the rest of the gateway. */
export interface IntakeFacts {
  /** Root of the spool. */
  readonly spool: string;
  readonly clock?: Clock;
  /** Whether the spool takes nothing more. Default: it always has room. */
  isFull?(): Promise<boolean>;
  /** Of users that name none. */
  readonly defaultService: string;
  accountOf(service: string): string | undefined;
  /** Why no trigger takes what comes to this drop under this guid for this service, in words; null when one does. */
  refusalOf(token: string, service: string, drop: string): string | null;
}

const FORGET_EVERY_MS = 3_600_000;
const REQUEST_MS = 300_000;
const SILENCE_MS = 60_000;
/** Requests under way when the gateway stops have so long to end. */
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
  #opening: Promise<Bodies> | null = null;
  #bodies: Bodies | null = null;
  #files: LocalDrop | null = null;
  #app: FastifyInstance | null = null;
  /** The one that a check looks at just now. */
  #probed: Receipt | null = null;
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
    const bodies = await this.#store();
    this.#app = this.#buildServer(bodies);
    const url = await listenOrExplain(this.#app, this.#options.listen, `listen of the drop ${this.name}`);
    this.#log.info({ drop: this.name, url }, "intake listens");
    return url;
  }

  async *list(signal: AbortSignal): AsyncGenerator<FileEntry> {
    const bodies = await this.#store();
    for (const { path, size, mtime } of bodies.receipts.lying()) {
      signal.throwIfAborted();
      yield { path, size, mtime };
    }
  }

  async stat(path: string, signal: AbortSignal): Promise<FileEntry | null> {
    const files = await this.#folder();
    const entry = await files.stat(path, signal);
    if (entry === null) this.#bodies?.receipts.left(path);
    return entry;
  }

  async fetch(entry: FileEntry, destination: string, signal: AbortSignal): Promise<FetchedFile> {
    return (await this.#folder()).fetch(entry, destination, signal);
  }

  async finish(entry: FileEntry, plan: FinishPlan): Promise<FinishResult> {
    const result = await (await this.#folder()).finish(entry, plan);
    if (plan.action === "leave" || result === "changed") return result;
    const bodies = await this.#store();
    bodies.receipts.left(entry.path);
    if (entry.path.startsWith("storage/")) await removeEmpty(join(bodies.folder, dirname(entry.path)));
    return result;
  }

  provenance(path: string): Provenance | null {
    const probed = this.#probed?.path === path ? this.#probed : null;
    const receipt = probed ?? this.#bodies?.receipts.byPath(path) ?? null;
    return receipt === null ? null : provenanceOf(receipt, this.#options);
  }

  modifiedMs(entry: FileEntry): number {
    return Number(BigInt(entry.mtime) / 1_000_000n);
  }

  async probe(
    signal: AbortSignal,
    onEntry: (entry: FileEntry) => void = () => undefined,
  ): Promise<readonly ProbeFinding[]> {
    signal.throwIfAborted();
    const findings = await probeIntake(this.#options, this.#root, this.#facts.defaultService);
    const lying = probeLying(this.#root, (receipt) => {
      this.#probed = receipt;
      onEntry({ path: receipt.path, size: receipt.size, mtime: receipt.mtime });
    });
    this.#probed = null;
    return [...findings, lying];
  }

  watch(onChange: () => void): () => Promise<void> {
    this.#watching.add(onChange);
    return async () => {
      this.#watching.delete(onChange);
    };
  }

  async close(): Promise<void> {
    clearInterval(this.#forgetting);
    const app = this.#app;
    this.#app = null;
    if (app !== null) {
      const timer = setTimeout(() => app.server.closeAllConnections(), CLOSE_WAIT_MS);
      await app.close();
      clearTimeout(timer);
    }
    await this.#files?.close();
    await this.#opening?.catch(() => undefined); // Its caller heard of it.
    this.#bodies?.close();
    this.#bodies = null;
  }

  #store(): Promise<Bodies> {
    this.#opening ??= Bodies.open(this.#root, this.#log).then((bodies) => {
      const forget = () => {
        try {
          bodies.receipts.forget(this.#clock.now().epochMilliseconds - this.#options.repeats);
        } catch (thrown) {
          this.#log.warn({ drop: this.name, reason: wordsOf(thrown) }, "old receipts stay for now");
        }
      };
      forget();
      this.#forgetting = setInterval(forget, FORGET_EVERY_MS).unref();
      this.#bodies = bodies;
      return bodies;
    });
    return this.#opening;
  }

  /** The bodies as a local drop: fetching and finishing are the same as there. */
  async #folder(): Promise<LocalDrop> {
    const { folder } = await this.#store();
    this.#files ??= new LocalDrop(
      {
        ...localOptions.parse({ kind: "local", name: this.name, path: folder, watch: false }),
        maxFileSize: Number.MAX_SAFE_INTEGER,
      },
      this.#log,
    );
    return this.#files;
  }

  #buildServer(bodies: Bodies): FastifyInstance {
    const { tls } = this.#options;
    const common = {
      bodyLimit: this.#options.limits.body,
      exposeHeadRoutes: false,
      forceCloseConnections: "idle" as const,
      requestTimeout: REQUEST_MS,
      connectionTimeout: SILENCE_MS,
      routerOptions: { ignoreTrailingSlash: true, caseSensitive: false, maxParamLength: 1_000 },
    };
    const app = (tls === undefined ? Fastify(common) : Fastify({ ...common, https: tls })) as FastifyInstance;
    const facts = this.#facts;
    const people = new People(
      this.#options,
      bodies.receipts.secret("tokens", () => randomBytes(SECRET_BYTES)),
      this.#clock,
    );
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
        for (const tell of this.#watching) tell();
      },
    };
    installProblems(app, this.#log);
    app.get("/health", () => ({ status: "ok" }));
    app.addHook("onResponse", async () => faultPoint("intake.answered"));
    const accountOf = (service: string | undefined) => facts.accountOf(service ?? facts.defaultService);
    void app.register((scope) => tokenRoutes(scope, { people, accountOf }));
    void app.register((scope) => pushRoutes(scope, parts));
    void app.register((scope) => storageRoutes(scope, parts));
    return app;
  }
}

function provenanceOf(receipt: Receipt, { users }: IntakeOptions): Provenance {
  const { route, service, token } = receipt;
  const common = { service, operationPrefix: receipt.operationId ?? String(receipt.id) };
  if (route === "storage") return { ...common, ingestionType: "UploadInStorage" };
  if (route === "generic") return { ...common, ingestionType: "SendViaHttp", token: token ?? "" };
  const user = users.find(({ username }) => username === receipt.username);
  const zone = user?.timeZone === undefined ? {} : { timeZone: user.timeZone };
  return { ...common, ingestionType: "SendViaHttp", standardBody: { ...zone, dst: user?.dst ?? "later" } };
}

async function removeEmpty(folder: string): Promise<void> {
  await rmdir(folder).catch((thrown: unknown) => {
    if (!["ENOENT", "ENOTEMPTY"].includes(systemCode(thrown) ?? "")) throw thrown;
  });
}
