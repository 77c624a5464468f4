/**
 * Everything that needs attention now, as one list: files at rest, late files, waiting lanes, unreachable drops and
 * services, the spool.
 */
import { Gauge, type Registry } from "prom-client";
import { type Clock, isoInstant } from "#core/clock.ts";
import { counted } from "#core/text.ts";
import type { DropNotice, FinishedFile, Ledger } from "../ledger/ledger.ts";
import type { DropState, IsoInstant, Pause, SpoolState } from "../model.ts";
import { ATTENTION_STATES } from "../states.ts";
import { runWords, type ServiceState } from "./attention-log.ts";
import { type MissingFile, missingWords } from "./late-files.ts";
import type { AttentionKind } from "./options.ts";
import {
  type ClockFault,
  type HealthPart,
  isUnattended,
  type UnfinishedFiles,
  unfinishedConcerns,
  unmatchedConcerns,
  type WaitingFile,
} from "./state-of-work.ts";
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

const DAY = { hours: 24 };
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

// Finished files that changed and cannot go back to their paths, since other files are there: their new content is
// not taken until the path is free or a person acts. Health, `runs --waiting`, `--until-idle` and notifications
// describe them in these words.

type OccupiedLedger = Pick<Ledger, "finishedFiles">;

export function occupiedWords({ drop, path, place, runId }: FinishedFile): string {
  const run = runId === null ? "" : ` (run ${runId})`;
  return (
    `${path} at ${drop}${run} changed after it was finished, and its new content is not taken: it waits at ` +
    `${place}, since another file is at its path. It goes back by itself when ${path} is free: see to the file ` +
    `there, or move it away; or move the one at ${place} into the drop under a new name`
  );
}

/** The gateway is ready all the same: other files are processed. */
export async function occupiedHealth({ finishedFiles }: OccupiedLedger): Promise<readonly HealthPart[]> {
  const files = await finishedFiles.occupied();
  const [first] = files;
  if (first === undefined) return [];
  const others = files.length === 1 ? "" : `; ${files.length - 1} more wait likewise`;
  return [{ part: "finished files", ready: true, reason: `${occupiedWords(first)}${others}` }];
}

export function waitingAsOccupied(file: FinishedFile, eventsArrive: boolean | null): WaitingFile {
  const { drop, path, runId } = file;
  const reason = occupiedWords(file);
  const since = file.occupiedSince ?? file.begunAt;
  return { drop, path, state: "occupied", since, reason, runId, overdue: true, eventsArrive };
}

// Files of a drop that others touched within the last day: another gateway, a ledger that was lost, a writer.

export function dropNotices(ledger: Pick<Ledger, "noticesSince">, clock: Clock): Promise<readonly DropNotice[]> {
  return ledger.noticesSince(isoInstant(clock.now().subtract(DAY)));
}

function noticeConcerns(notices: readonly DropNotice[]): readonly Concern[] {
  return notices.map((notice) => {
    const { kind, drop, files, example, latestAt } = notice;
    const facts = { drop, files, [kind === "repeated" ? "operation" : "file"]: example, latestAt };
    return { key: `${kind} ${drop}`, kind: "drop", text: `drop ${drop}: ${noticeWords(notice)}`, facts };
  });
}

export function noticeHealth(notices: readonly DropNotice[]): readonly HealthPart[] {
  return notices.map((notice) => ({ part: `drop ${notice.drop}`, ready: true, reason: noticeWords(notice) }));
}

export function noticeWords({ kind, files, example, latestAt }: DropNotice): string {
  const count = `${counted(files, "file")} of the last day`;
  if (kind === "replaced")
    return (
      `${count} ${files === 1 ? "was" : "were"} replaced by other content after the gateway had claimed it, at last ` +
      `at ${latestAt} (${example}): what was fetched is delivered, and the other content is an arrival of its own. ` +
      "Let the writer give each file a name of its own"
    );
  const by = example === "" ? "" : ` (${example})`;
  return (
    `${count} had already been delivered by operations that this ledger does not have${by}: it was lost or restored, ` +
    "or another gateway takes the files of this drop"
  );
}

// How full the spool is, for health and metrics.

export function spoolHealth(state: SpoolState): HealthPart {
  return { part: "spool", ready: state.full === null, reason: state.full ?? usedWords(state) };
}

/**
 * Such as `80 % of its budget is in use, 10 % in the ledger's database, 62 % by 3 held runs (`headgate
 * quarantine` lists them)`.
 */
export function usedWords({ usedBytes, sharedBytes, budgetBytes, held }: SpoolState): string {
  const share = (bytes: number) => `${Math.round((bytes / budgetBytes) * 100)} %`;
  const shared = sharedBytes === 0 ? "" : `, ${share(sharedBytes)} in the ledger's database`;
  const words = `${share(usedBytes)} of its budget is in use${shared}`;
  if (held.runs === 0) return words;
  const runs = `${held.runs} held ${held.runs === 1 ? "run" : "runs"}`;
  return `${words}, ${share(held.bytes)} by ${runs} (\`headgate quarantine\` lists them)`;
}

export function measureSpool(registry: Registry, quota: { state(): Promise<SpoolState> }): void {
  const measure = (name: string, help: string, value: (state: SpoolState) => number) =>
    new Gauge({
      name,
      help,
      registers: [registry],
      async collect() {
        this.set(value(await quota.state()));
      },
    });
  measure("headgate_spool_bytes", "Bytes of files in the spool", (state) => state.usedBytes);
  measure(
    "headgate_spool_shared_bytes",
    "The part of these that is bodies of HTTP intakes that wait in the ledger's database, where all nodes have them",
    (state) => state.sharedBytes,
  );
  measure(
    "headgate_spool_held_bytes",
    "The part of these that belongs to held runs; 0 while little of the budget is in use",
    (state) => state.held.bytes,
  );
  measure("headgate_spool_budget_bytes", "`spool.budget`", (state) => state.budgetBytes);
  measure("headgate_spool_free_bytes", "Free space of the spool's disk", (state) => state.freeBytes);
  measure("headgate_spool_full", "1 while no files are taken, since the spool is full", (state) =>
    state.full === null ? 0 : 1,
  );
}

// Triggers that come from services, for people: in health, notifications and metrics.

/** The triggers of one service. */
export interface ListedTriggers {
  readonly service: string;
  /** When the service listed them; null: they are not known yet. */
  readonly listedAt: IsoInstant | null;
  /** Why they could not be read at the last attempt; null when they were. */
  readonly fault: string | null;
  /** Since when the service lists none, which further readings have to confirm; else null. */
  readonly emptySince: IsoInstant | null;
  readonly count: number;
  /** Triggers that are on and cannot work as the service has them. */
  readonly unusable: readonly UnusableTrigger[];
}

export interface UnusableTrigger {
  readonly trigger: string;
  readonly reason: string;
}

export function triggerHealth(all: readonly ListedTriggers[]): readonly HealthPart[] {
  return all.flatMap((one) => [
    // The service itself reports whether it can be used; the kept triggers work meanwhile.
    { part: `triggers of ${one.service}`, ready: one.listedAt !== null, reason: stateWords(one) },
    ...one.unusable.map(({ trigger, reason }) => ({ part: `trigger ${trigger}`, ready: true, reason })),
  ]);
}

function triggerConcerns(all: readonly ListedTriggers[]): readonly Concern[] {
  return all.flatMap((one): readonly Concern[] => {
    const { service, fault, emptySince, listedAt } = one;
    const unusable = one.unusable.map(
      ({ trigger, reason }): Concern => ({
        key: `trigger ${trigger}`,
        kind: "trigger",
        text: `the trigger ${trigger} cannot be used: ${reason}`,
        facts: { trigger, service },
      }),
    );
    if (fault === null && emptySince === null) return unusable;
    const text = `the triggers of the service ${service}: ${stateWords(one)}`;
    return [{ key: `triggers ${service}`, kind: "service", text, facts: { service, listedAt } }, ...unusable];
  });
}

function stateWords({ listedAt, fault, emptySince, count }: ListedTriggers): string {
  const known = listedAt === null ? "they are not known yet" : `${count}, listed at ${listedAt}`;
  if (fault === null)
    return emptySince === null
      ? known
      : `${known}, stay in force for now: the service lists none since ${emptySince}, which further readings confirm`;
  return listedAt === null ? `${known}: ${fault}` : `${known}, stay in force, since they cannot be read now: ${fault}`;
}

export function measureTriggers(registry: Registry, states: () => Promise<readonly ListedTriggers[]>): void {
  const measure = (name: string, help: string, value: (one: ListedTriggers) => number | null) =>
    new Gauge({
      name,
      help,
      labelNames: ["service"],
      registers: [registry],
      async collect() {
        this.reset();
        for (const one of await states()) {
          const measured = value(one);
          if (measured !== null) this.set({ service: one.service }, measured);
        }
      },
    });
  measure("headgate_service_triggers", "Triggers that the service listed", ({ count }) => count);
  measure(
    "headgate_service_triggers_unusable",
    "Those of them that are on and cannot work: they are malformed, or their mapper is missing or refuses its settings",
    ({ unusable }) => unusable.length,
  );
  measure(
    "headgate_service_triggers_listed_timestamp_seconds",
    "When the service last listed its triggers whole",
    ({ listedAt }) => (listedAt === null ? null : Date.parse(listedAt) / 1000),
  );
  measure(
    "headgate_service_triggers_stale",
    "1 while the triggers of the service cannot be read, or it lists none, which is not confirmed yet; those that it " +
      "listed last stay in force",
    ({ fault, emptySince }) => (fault === null && emptySince === null ? 0 : 1),
  );
}
