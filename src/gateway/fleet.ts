/**
 * This gateway as one of the nodes that share a ledger: the drops that it polls, and its reaction when a node joins
 * or leaves.
 */
import type { Clock } from "#core/clock.ts";
import { wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import type { DropOptions } from "./drops/options.ts";
import { addApproved, isApprovalOf } from "./drops/sftp/approval.ts";
import type { FleetWatch } from "./ledger/fleet.ts";
import type { Ledger } from "./ledger/ledger.ts";
import type { Pauses } from "./runs/pauses.ts";
import { resumeRuns } from "./runs/recovery.ts";
import type { Scheduler } from "./runs/scheduler.ts";

interface FleetWatcher {
  status(): { readonly drop: string };
  rematch(): Promise<unknown>;
  pollNow(): Promise<unknown>;
}

export interface FleetParts {
  readonly ledger: Ledger;
  readonly scheduler: Pick<Scheduler, "wake" | "releaseAll" | "isRunning">;
  readonly watchers: () => readonly FleetWatcher[];
  /** Drops of the configuration in force; a drop may have no watcher while it is being exchanged. */
  readonly configured: () => readonly DropOptions[];
  readonly pauses: Pick<Pauses, "refresh">;
  readonly clock: Clock;
  readonly log: Logger;
}

const NOT_ASKED = "it is not known yet which node polls it";

export class FleetMember {
  /** For each drop that this node asked for: why it does not poll it, or null. */
  readonly #reasons = new Map<string, string | null>();
  readonly #stopping = new AbortController();
  #loop: Promise<void> = Promise.resolve();
  #alone = true;
  #rest = new AbortController();
  #lost = false;
  readonly #onLeft: () => void;

  constructor(onLeft: () => void = () => undefined) {
    this.#onLeft = onLeft;
  }

  /** Passed to the ledger, which is opened before the other parts exist. */
  readonly watch: FleetWatch = {
    onLost: () => {
      this.#lost = true;
      this.#rest.abort();
    },
    onLeft: () => {
      this.#rest.abort();
      this.#onLeft();
    },
  };

  /** Why this node does not poll the drop; null when it does. */
  reason(drop: string): string | null {
    if (this.#alone) return null;
    const known = this.#reasons.get(drop);
    return known === undefined ? NOT_ASKED : known;
  }

  /** Resolves when the polling node of each drop is known. */
  async join(parts: FleetParts): Promise<void> {
    const { recheckMs } = parts.ledger.fleet;
    if (recheckMs === null) return;
    this.#alone = false;
    await copyApprovedKeys(parts.configured(), parts);
    await this.#takeDrops(parts);
    this.#loop = this.#recheck(parts, recheckMs);
  }

  /** The configured drops changed: removed drops are released at once, added drops are requested. */
  dropsChanged(): void {
    this.#rest.abort();
  }

  async leave(): Promise<void> {
    this.#stopping.abort();
    this.#rest.abort();
    await this.#loop;
  }

  async #recheck(parts: FleetParts, everyMs: number): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      await parts.clock.sleep(everyMs, this.#rest.signal);
      if (this.#stopping.signal.aborted) return;
      this.#rest = new AbortController();
      try {
        if (this.#lost) {
          this.#lost = false;
          this.#reasons.clear();
          await parts.scheduler.releaseAll();
        }
        await this.#releaseDrops(parts);
        await parts.pauses.refresh();
        const approved = await copyApprovedKeys(parts.configured(), parts);
        // As the next ones: the status of the drop reports its faults.
        for (const watcher of parts.watchers())
          if (approved.has(watcher.status().drop)) watcher.pollNow().catch(() => undefined);
        for (const watcher of await this.#takeDrops(parts)) {
          await watcher.rematch();
          // The status of the drop reports its faults.
          watcher.pollNow().catch(() => undefined);
        }
        await resumeRuns(parts, (runId) => parts.scheduler.isRunning(runId));
        parts.scheduler.wake();
      } catch (thrown) {
        parts.log.warn({ reason: wordsOf(thrown) }, "the work of other nodes could not be checked");
      }
    }
  }

  /** Releases the drops that this node had asked for and that are no longer configured. */
  async #releaseDrops({ ledger, watchers, configured, log }: FleetParts): Promise<void> {
    const names = configured().map(({ name }) => name);
    const known = new Set([...names, ...watchers().map((watcher) => watcher.status().drop)]);
    for (const drop of [...this.#reasons.keys()].filter((name) => !known.has(name))) {
      await ledger.fleet.releaseDrop(drop);
      this.#reasons.delete(drop);
      log.info({ drop }, "the drop is no longer in the configuration: another node may poll it");
    }
  }

  /** Returns the watchers of drops that this node polls from now on. */
  async #takeDrops({ ledger, watchers, log }: FleetParts): Promise<readonly FleetWatcher[]> {
    const taken: FleetWatcher[] = [];
    for (const watcher of watchers()) {
      const { drop } = watcher.status();
      const before = this.#reasons.get(drop);
      const holder = await ledger.fleet.holdDrop(drop);
      this.#reasons.set(drop, holder === null ? null : `the node ${holder} polls it`);
      if (holder !== null || before === null) continue;
      log.info({ drop }, "this node polls the drop from now on");
      taken.push(watcher);
    }
    return taken;
  }
}

// Copies the host keys that a person approved, on whichever node, to the files of this node's drops.

/**
 * Returns the drops that trust a further key from now on. A file that cannot be written is reported, and hinders no
 * other work of the node.
 */
export async function copyApprovedKeys(
  drops: readonly DropOptions[],
  { ledger, log }: { readonly ledger: Pick<Ledger, "approvedKeys">; readonly log: Logger },
): Promise<ReadonlySet<string>> {
  const changed = new Set<string>();
  for (const { drop, lines } of await ledger.approvedKeys.list()) {
    const options = drops.find(({ name }) => name === drop);
    if (options?.kind !== "sftp" || options.approvedHosts === undefined || !isApprovalOf(options, lines)) continue;
    try {
      if (await addApproved(options.approvedHosts, lines)) changed.add(drop);
    } catch (thrown) {
      const facts = { drop, file: options.approvedHosts, reason: wordsOf(thrown) };
      log.warn(facts, "a host key that a person approved on another node could not be added to the file of this node");
    }
  }
  return changed;
}
