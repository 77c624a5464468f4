/** Tries a drop as a person would have it: connection, listing, rights, and what the triggers make of its files. */
import { basename } from "node:path/posix";
import { HeadgateError, wordsOf } from "#core/errors.ts";
import { isContainerName } from "#core/file-names.ts";
import { silentLog } from "#core/log.ts";
import type { GatewayConfig } from "./config.ts";
import { dropHistory } from "./drop-history.ts";
import { createDrop } from "./drops/create.ts";
import type { ProbeFinding, Provenance } from "./drops/drop.ts";
import { InitialForecast } from "./drops/initial.ts";
import type { Ledger } from "./ledger/ledger.ts";
import type { TriggerRegistry } from "./triggers/registry.ts";

export interface DropCheckParts {
  readonly config: GatewayConfig;
  /** Null where there is none yet. */
  readonly ledger: Ledger | null;
  readonly registry: TriggerRegistry;
}

type DropOptions = GatewayConfig["drops"][number];

/** With connections of its own, so that a gateway that polls the drop is not disturbed. Faults are findings. */
export async function checkDrop(
  { config, ledger, registry }: DropCheckParts,
  options: DropOptions,
  stop: AbortSignal,
): Promise<readonly ProbeFinding[]> {
  const intake = {
    spool: config.spool.path,
    shared: ledger?.shared?.intake ?? null,
    defaultService: config.services[0]?.name ?? "",
    accountOf: () => undefined,
    refusalOf: () => null,
  };
  const drop = await createDrop(options, { log: silentLog, intake });
  const findings: ProbeFinding[] = [];
  try {
    const claims = new Claims(registry, options);
    const forecast = new InitialForecast(options.initial, drop);
    const found = await drop.probe(stop, (entry, provenance) => {
      claims.add(entry.path, provenance ?? null);
      forecast.add(entry);
    });
    findings.push(...found);
    if (!found.some(({ about, level }) => about === "listing" && level !== "failed")) return findings;
    findings.push({ level: "ok", about: "triggers", what: claims.words() });
    if (ledger !== null) findings.push(...(await dropHistory(ledger, options, drop, stop)));
    if (options.initial !== "process") findings.push({ level: "ok", about: "initial", what: forecast.words() });
  } catch (thrown) {
    const hint = thrown instanceof HeadgateError ? { hint: thrown.advice } : {};
    findings.push({ level: "failed", about: "drop", what: wordsOf(thrown), ...hint });
  } finally {
    await drop.close();
  }
  return findings;
}

/** Counts files by the effect of their names. */
class Claims {
  readonly #registry: TriggerRegistry;
  readonly #options: DropOptions;
  readonly #counts = new Map<string, number>();

  constructor(registry: TriggerRegistry, options: DropOptions) {
    this.#registry = registry;
    this.#options = options;
  }

  add(path: string, provenance: Provenance | null): void {
    const words = this.#wordsFor(path, provenance);
    this.#counts.set(words, (this.#counts.get(words) ?? 0) + 1);
  }

  words(): string {
    if (this.#counts.size === 0) return "it holds no files now";
    return [...this.#counts].map(([words, count]) => `${count} ${words}`).join(", ");
  }

  #wordsFor(path: string, provenance: Provenance | null): string {
    const { name, archives } = this.#options;
    if (provenance?.standardBody !== undefined) return "in the standard format, which needs no trigger";
    if (archives.unpack && isContainerName(basename(path))) return "would be opened, entry by entry";
    const ingestionType = provenance?.ingestionType ?? "SendViaFtp";
    const { claimed } = this.#registry.claim(path, ingestionType, name, provenance ?? undefined);
    return claimed === null ? "no trigger claims" : `would match trigger ${claimed.name}`;
  }
}
