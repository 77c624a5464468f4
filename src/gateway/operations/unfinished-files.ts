/**
 * Source files that could not be archived or deleted, one matter for each drop: health, notifications, metrics and the
 * console describe them in these words.
 */
import { Gauge, type Registry } from "prom-client";
import type { Ledger } from "../ledger/ledger.ts";
import type { Concern } from "./attention.ts";
import type { HealthPart } from "./state-of-work.ts";

/** The part of `FinishFaults` that is shown. */
export interface UnfinishedFiles {
  list(): readonly {
    readonly drop: string;
    readonly path: string;
    readonly runId: string | null;
    readonly since: string;
    readonly code: string | null;
    readonly reason: string;
  }[];
  note(file: { readonly drop: string; readonly path: string; readonly runId: string | null }, thrown: null): void;
  readonly isKnown: boolean;
}

/** By drop, the oldest first. A run that a person cancelled or forgot meanwhile is no longer one of them. */
async function byDrop(files: UnfinishedFiles, ledger: Pick<Ledger, "run">) {
  const first = new Map<string, { count: number; one: ReturnType<UnfinishedFiles["list"]>[number] }>();
  for (const one of files.list()) {
    const known = first.get(one.drop);
    if (known !== undefined) known.count += 1;
    else if (one.runId === null || (await ledger.run(one.runId)) !== null) first.set(one.drop, { count: 1, one });
    else files.note(one, null);
  }
  return [...first.values()];
}

export async function unfinishedConcerns(files: UnfinishedFiles, ledger: Pick<Ledger, "run">) {
  return (await byDrop(files, ledger)).map(({ count, one }): Concern => {
    const { drop, path, since, code, reason } = one;
    const others = count === 1 ? "" : `, as ${count - 1} more at ${drop}`;
    const text = `${path} at ${drop} cannot be archived or deleted and stays where it is${others}: ${reason}`;
    const facts = { drop, file: path, run: one.runId, code, since, count };
    return { key: `finish ${drop}`, kind: "finish", text, facts };
  });
}

/** The gateway is ready all the same: readings are delivered. */
export async function unfinishedHealth(
  files: UnfinishedFiles,
  ledger: Pick<Ledger, "run">,
): Promise<readonly HealthPart[]> {
  const concerns = await unfinishedConcerns(files, ledger);
  return concerns.map(({ text, facts }) => ({ part: `finish at ${facts["drop"]}`, ready: true, reason: text }));
}

export function measureUnfinished(
  registry: Registry,
  sources: { unfinished(): ReturnType<UnfinishedFiles["list"]>; drops(): readonly { readonly drop: string }[] },
): void {
  new Gauge({
    name: "headgate_files_unfinished",
    help: "Source files that could not be archived or deleted at the last attempt",
    labelNames: ["drop"],
    registers: [registry],
    collect() {
      this.reset();
      for (const { drop } of sources.drops()) this.set({ drop }, 0);
      for (const { drop } of sources.unfinished()) this.inc({ drop });
    },
  });
}
