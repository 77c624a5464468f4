/** Handlers of the endpoints about the configuration. */

import { getCompileCacheDir } from "node:module";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { Piscina } from "piscina";
import { RejectedError, wordsOf } from "#core/errors.ts";
import { besideModule } from "#core/threads/beside.ts";
import { FairQueue } from "#core/turns.ts";
import { settingsOf } from "../effective-config.ts";
import type { configurationEndpoints, Validation } from "../operations/api/configuration.ts";
import type { HandlersOf } from "../operations/api/endpoint.ts";
import { NewestRequests } from "./actions.ts";
import type { QueryParts } from "./parts.ts";

/** Milliseconds of one text, with the start of the thread. */
const TIME_LIMIT_MS = 20_000;
const MEMORY_MEGABYTES = 256;
const IDLE_MS = 10_000;

export function configurationHandlers({
  live,
  configFile,
  configuration,
  closers,
}: Pick<QueryParts, "live" | "configFile" | "configuration" | "closers">): HandlersOf<typeof configurationEndpoints> {
  const validator = new Validator();
  closers.push(() => validator.close());
  return {
    configuration: () => ({
      file: configFile ?? null,
      settings: settingsOf(live.file()),
      reloads: configuration?.reloads() ?? [],
    }),
    validate: ({ body, person, signal }) => validator.validate(body.text, person.name, signal),
  };
}

/** Validates texts of configurations, one at a time, in a thread that is ended when it takes too long. */
export class Validator {
  readonly #timeLimitMs: number;
  readonly #newest = new NewestRequests("validate configuration");
  readonly #slot = new FairQueue<string>(1);
  #pool: Piscina<string, Validation> | null = null;

  constructor(timeLimitMs = TIME_LIMIT_MS) {
    this.#timeLimitMs = timeLimitMs;
  }

  /** Throws `RejectedError` for a text that needs more time or memory than the thread has. */
  validate(text: string, person: string, gone: AbortSignal): Promise<Validation> {
    return this.#newest.run(person, gone, (signal) => this.#slot.run(person, () => this.#check(text, signal), signal));
  }

  async close(): Promise<void> {
    this.#newest.close();
    await this.#pool?.destroy();
  }

  async #check(text: string, gone: AbortSignal): Promise<Validation> {
    this.#pool ??= startPool();
    const limit = AbortSignal.timeout(this.#timeLimitMs);
    try {
      return await this.#pool.run(text, { signal: AbortSignal.any([gone, limit]) });
    } catch (cause) {
      if (gone.aborted) throw cause;
      const why = limit.aborted ? `it takes more than ${this.#timeLimitMs / 1_000} s` : wordsOf(cause);
      throw new RejectedError("HG-OPS-013", {
        operation: "validate configuration",
        subject: `a text of ${text.length} characters`,
        message: `the text cannot be checked: ${why}`,
        cause,
      });
    }
  }
}

function startPool(): Piscina<string, Validation> {
  const cache = getCompileCacheDir();
  const pool = new Piscina<string, Validation>({
    filename: fileURLToPath(besideModule(import.meta.url, "validation-worker")),
    name: "perform",
    minThreads: 0,
    maxThreads: 1,
    idleTimeout: IDLE_MS,
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MEGABYTES },
    // The thread sees no variable of the gateway, whose values are no part of the text.
    env: cache === undefined ? {} : { NODE_COMPILE_CACHE: dirname(cache) },
    execArgv: [],
    recordTiming: false,
  });
  // A thread that dies without a task is replaced at the next one.
  pool.on("error", () => undefined);
  return pool;
}
