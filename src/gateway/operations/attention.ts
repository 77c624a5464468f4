/**
 * Everything that needs attention now, as one list: files at rest, late files, waiting lanes, unreachable drops and
 * services, the spool.
 */
import type { DropNotice, Ledger } from "../ledger/ledger.ts";
import type { DropState, Pause, SpoolState } from "../model.ts";
import { ATTENTION_STATES } from "../states.ts";
import { runWords, type ServiceState } from "./attention-log.ts";
import { noticeConcerns } from "./drop-notices.ts";
import { type MissingFile, missingWords } from "./late-files.ts";
import { type ListedTriggers, triggerConcerns } from "./listed-triggers.ts";
import { occupiedWords } from "./occupied-files.ts";
import type { AttentionKind } from "./options.ts";
import { usedWords } from "./spool-state.ts";
import { type ClockFault, isUnattended } from "./state-of-work.ts";
import { type UnfinishedFiles, unfinishedConcerns } from "./unfinished-files.ts";
import { unmatchedConcerns } from "./unmatched-files.ts";
import { type LaneWait, waitWords } from "./waiting-lanes.ts";

/** One thing that needs attention. `key` is its identity for as long as it lasts, also over restarts. */
export interface Concern {
  readonly key: string;
  readonly kind: AttentionKind;
  /** One line for a person. */
  readonly text: string;
  /** For programs. */
  readonly facts: Readonly<Record<string, string | number | null>>;
}

export interface Attention {
  readonly concerns: readonly Concern[];
  /**
   * Keys whose state is not known yet, such as that of a drop that was not polled since the start: they keep their
   * former state.
   */
  readonly unknown: ReadonlySet<string>;
  /** Kinds of which this holds for all that is not found. */
  readonly unknownKinds?: ReadonlySet<AttentionKind>;
}

export interface AttentionSources {
  readonly ledger: Pick<Ledger, "restingIn" | "finishedFiles" | "fleet" | "files" | "settlingAges" | "run">;
  /** This node, where several share the ledger: each node reports its own runs. */
  readonly node: string | null;
  drops(): readonly DropState[];
  /** Names of the configured services, and the state of each. */
  services(): readonly { readonly name: string; readonly state: Pick<ServiceState, "state" | "reason"> | null }[];
  /** Services whose clock is far from ours. */
  clocks(): readonly ClockFault[];
  late(): readonly MissingFile[];
  /** Lanes that have waited too long. */
  lanes(): Promise<readonly LaneWait[]>;
  /** Files that others touched. */
  notices(): Promise<readonly DropNotice[]>;
  /** Triggers that come from services. */
  triggers(): Promise<readonly ListedTriggers[]>;
  /** Pauses that the gateway itself ordered, with the reason in words. */
  pauses(): readonly { readonly pause: Pause; readonly words: string }[];
  readonly unfinished: UnfinishedFiles;
  /** Why the configuration's file is refused, and since when; null when it is in force. */
  refusedConfiguration(): RefusedConfiguration | null;
  spool(): Promise<SpoolState>;
  readonly spoolShare: number;
}

export interface RefusedConfiguration {
  readonly since: string;
  readonly reason: string;
}

const RUNS_MAX = 1_000;

export async function findAttention(sources: AttentionSources): Promise<Attention> {
  const runs = await restingRuns(sources);
  const own = await ownDrops(sources);
  const dropNames = sources.drops().map(({ drop }) => drop);
  const unmatched = await unmatchedConcerns(sources.ledger, dropNames.filter(own));
  const { concerns, unknown, ...kinds } = await findOtherConcerns(sources);
  return {
    concerns: [...runs, ...unmatched.concerns, ...concerns],
    unknown: unmatched.unknown.union(unknown),
    ...kinds,
  };
}

/** Where several nodes share the ledger, the node that polls a drop reports its files. */
async function ownDrops({ ledger, node }: AttentionSources): Promise<(drop: string) => boolean> {
  if (node === null) return () => true;
  const own = (await ledger.fleet.nodes()).find((one) => one.node === node);
  return (drop) => own?.drops.includes(drop) === true;
}

/** Without files whose runs need a person, and files that no trigger claims. */
export async function findOtherConcerns(sources: AttentionSources): Promise<Attention> {
  const unknown = new Set<string>();
  const unfinished = await unfinishedConcerns(sources.unfinished, sources.ledger);
  const concerns = [...unfinished, ...(await occupiedPaths(sources))];
  const refused = sources.refusedConfiguration();
  if (refused !== null) {
    const text = `the changed configuration is refused, and the former one stays in force: ${refused.reason}`;
    concerns.push({ key: "configuration", kind: "configuration", text, facts: { since: refused.since } });
  }
  for (const file of sources.late()) {
    const facts = { trigger: file.trigger, due: file.due, lastSeen: file.lastSeen };
    concerns.push({ key: `late ${file.trigger} ${file.due}`, kind: "late", text: missingWords(file), facts });
  }
  for (const wait of await sources.lanes()) {
    const { lane, since, behind, run } = wait;
    const facts = { lane, since, run: run.id, drop: run.drop, file: run.path, behind };
    concerns.push({ key: `lane ${lane}`, kind: "lane", text: waitWords(wait), facts });
  }
  for (const state of sources.drops()) {
    const { drop, paused, lastError, lastCompletePoll } = state;
    const key = `drop ${drop}`;
    if (paused !== undefined && paused !== null) continue;
    if (lastError === null && lastCompletePoll === null) unknown.add(key);
    if (lastError === null) continue;
    const { message } = lastError;
    const text = message.includes(`drop ${drop}`) ? message : `the drop ${drop} cannot be polled: ${message}`;
    concerns.push({ key, kind: "drop", text, facts: { drop, code: lastError.code } });
  }
  for (const { name, state } of sources.services()) {
    const key = `service ${name}`;
    if (state === null) unknown.add(key);
    if (state?.state !== "down") continue;
    const text = `the service ${name} cannot be used: ${state.reason ?? ""}`;
    concerns.push({ key, kind: "service", text, facts: { service: name } });
  }
  for (const { service, words, hint } of sources.clocks())
    concerns.push({ key: `clock ${service}`, kind: "service", text: `${words}. ${hint}`, facts: { service } });
  concerns.push(
    ...(await ofOwnDrops(sources, noticeConcerns(await sources.notices()))),
    ...triggerConcerns(await sources.triggers()),
  );
  for (const { pause, words } of sources.pauses()) {
    const { kind, name, at } = pause;
    concerns.push({ key: `paused ${kind} ${name}`, kind: "paused", text: words, facts: { [kind]: name, since: at } });
  }
  const spool = await sources.spool();
  if (spool.full !== null || spool.usedBytes >= spool.budgetBytes * sources.spoolShare)
    concerns.push({
      key: "spool",
      kind: "spool",
      text: spool.full ?? `the spool is nearly full: ${usedWords(spool)}`,
      facts: { usedBytes: spool.usedBytes, budgetBytes: spool.budgetBytes },
    });
  return { concerns, unknown, unknownKinds: new Set(sources.unfinished.isKnown ? [] : (["finish"] as const)) };
}

async function occupiedPaths(sources: AttentionSources): Promise<readonly Concern[]> {
  const files = await sources.ledger.finishedFiles.occupied();
  const concerns = files.map((file): Concern => {
    const { drop, path, place, runId } = file;
    const facts = { drop, file: path, place, run: runId, since: file.occupiedSince };
    return { key: `occupied ${drop} ${place}`, kind: "occupied", text: occupiedWords(file), facts };
  });
  return ofOwnDrops(sources, concerns);
}

async function ofOwnDrops(sources: AttentionSources, concerns: readonly Concern[]): Promise<readonly Concern[]> {
  if (concerns.length === 0) return [];
  const own = await ownDrops(sources);
  return concerns.filter(({ facts }) => own(String(facts["drop"])));
}

async function restingRuns({ ledger, node }: AttentionSources): Promise<readonly Concern[]> {
  const resting = await ledger.restingIn(ATTENTION_STATES, RUNS_MAX);
  return resting.flatMap((one) => {
    const { run } = one;
    if (!isUnattended(one) || (node !== null && run.node !== null && run.node !== node)) return [];
    const { id, drop, path, state, reason, changedAt, binding } = run;
    const facts = {
      run: id,
      drop,
      file: path,
      trigger: binding.trigger,
      code: reason?.code ?? null,
      changedAt,
    };
    return [{ key: `run ${id} ${state}`, kind: state as AttentionKind, text: runWords(run), facts }];
  });
}
