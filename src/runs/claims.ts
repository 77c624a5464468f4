/** A settled arrival meets the triggers: it becomes a run with all that binds it, or is unmatched, with the reason. */
import { basename } from "node:path/posix";
import { finishFile, type Provenance, setFileAside } from "../drops/drop.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { MapperVersions } from "../mapping/contract.ts";
import type {
  Arrival,
  BatchLimits,
  Binding,
  BoundLookup,
  FinishPlan,
  MapperIdentity,
  Reason,
  UnpackLimits,
} from "../model.ts";
import type { Clock } from "../support/clock.ts";
import { ConfigError, wordsOf } from "../support/errors.ts";
import { hasEscapes, unusableName } from "../support/file-names.ts";
import type { Logger } from "../support/log.ts";
import type { Turns } from "../support/turns.ts";
import { asideEvent, beginWatch } from "./finish-guard.ts";
import type { LookupStore } from "./lookups.ts";
import { type DropEntry, type RunSteps, reasonOf } from "./steps/steps.ts";
import { isContainerName } from "./unpacking/container.ts";

/** What runs of `POST /api/data` name in place of a trigger. */
export const STANDARD_BODY_TRIGGER = "POST /api/data";

const NO_WARNINGS: ReadonlyMap<number, string> = new Map();

/** For finishing an unmatched file, in milliseconds. */
const FINISH_MS = 60_000;

/** What a claim needs of a trigger; the configuration's triggers have this shape. */
export interface ClaimingTrigger {
  readonly name: string;
  readonly mapper: string;
  readonly service?: string | undefined;
  readonly rows: Binding["rows"];
  readonly rejectShare?: number | undefined;
  readonly lane?: string | undefined;
  readonly version?: Binding["version"];
  readonly operationPrefix?: string | undefined;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** How a drop takes compressed files. */
export interface Unpacking extends UnpackLimits {
  readonly unpack: boolean;
  /** How deep containers may lie in each other. */
  readonly depthMax: number;
}

export interface ClaimParts {
  readonly ledger: Ledger;
  readonly versions: Pick<MapperVersions, "current">;
  readonly log: Logger;
  readonly clock: Clock;
  /** The trigger that claims a file, and the names of others that would have. */
  match(
    file: Pick<Arrival, "drop" | "path">,
    provenance: Provenance | null,
  ): { readonly claimed: ClaimingTrigger | null; readonly others: readonly string[]; readonly why: string };
  /** Undefined for a drop that is not in the configuration any more. */
  unpacking(drop: string): Unpacking | undefined;
  /** How a file came, when its drop knows. */
  provenance(file: Pick<Arrival, "drop" | "path">): Promise<Provenance | null>;
  /** Why a person has a trigger claim nothing; null while it does. */
  pausedTrigger(name: string): string | null;
  laneOf(trigger: ClaimingTrigger, drop: string, service: string): string;
  /** All lanes that files of a drop may come to; `service`: of triggers that name none. */
  lanesOf(drop: string, service: string): readonly string[];
  dropEntry(name: string): DropEntry | undefined;
  planFinish: RunSteps["planFinish"];
  readonly lookups: Pick<LookupStore, "bind">;
  /** The service of triggers that name none. */
  readonly defaultService: string;
  readonly limits: BatchLimits;
  /** Of claims, and of finishing unmatched files. */
  readonly turns: Turns;
  readonly finishing: Turns;
  /** Runs were opened. */
  onRun(): void;
}

/**
 * Callback of pick-up: afterwards each arrival is `matched` or `unmatched`. Several drops may ask at once: what they need is looked up side
 * by side, and runs are opened in the order of asking (invariant 7). Throws what the first of those that failed threw, when none is under
 * way any more.
 */
export async function claimArrivals(
  arrivals: readonly Arrival[],
  parts: ClaimParts,
  warnings: ReadonlyMap<number, string> = NO_WARNINGS,
): Promise<void> {
  const turn = parts.turns.enter();
  const faults: unknown[] = [];
  const noteFault = (thrown: unknown) => void faults.push(thrown);
  try {
    const found = new SharedFinds(parts);
    const prepared: PreparedClaim[] = [];
    for (const arrival of arrivals) {
      const claim = await prepareClaim(arrival, found, parts, warnings.get(arrival.id)).catch(noteFault);
      if (claim !== undefined) prepared.push(claim);
    }
    await turn.mine;
    const recorded: PreparedClaim[] = [];
    const recording = prepared.map((claim) => claim.record().then(() => recorded.push(claim), noteFault));
    turn.pass();
    await Promise.all(recording);
    if (recorded.some(({ opens }) => opens)) parts.onRun();
    // Nothing is done to a file that the ledger does not know it of.
    for (const { after } of recorded) await after?.().catch(noteFault);
  } finally {
    turn.pass();
  }
  if (faults.length > 0) throw faults[0];
}

/** What pick-up asks of claims. */
export function claimsBy(parts: ClaimParts) {
  return {
    claim: (arrivals: readonly Arrival[], warnings?: ReadonlyMap<number, string>) =>
      claimArrivals(arrivals, parts, warnings),
    lanesOf: (drop: string, path: string) => lanesOfFile({ drop, path }, parts),
  };
}

/** The lanes that a file at this path of a drop comes to; an archive, all that its entries may come to. None when no trigger claims it. */
function lanesOfFile(file: Pick<Arrival, "drop" | "path">, parts: ClaimParts): readonly string[] {
  const unpacks = parts.unpacking(file.drop)?.unpack === true;
  if (unpacks && isContainerName(basename(file.path))) return parts.lanesOf(file.drop, parts.defaultService);
  const { claimed } = parts.match(file, null);
  if (claimed === null) return [];
  return [parts.laneOf(claimed, file.drop, claimed.service ?? parts.defaultService)];
}

interface PreparedClaim {
  /** A run is opened. */
  readonly opens: boolean;
  /** What is asked of the ledger first is asked before this returns. */
  record(): Promise<unknown>;
  after?(): Promise<void>;
}

/** What the arrivals of a list have in common is found once. */
class SharedFinds {
  readonly #parts: ClaimParts;
  readonly #bound = new Map<ClaimingTrigger, Promise<BoundClaim>>();
  #lookups: Promise<readonly BoundLookup[]> | null = null;

  constructor(parts: ClaimParts) {
    this.#parts = parts;
  }

  /** The same object for all that the trigger claims, but for those whose senders have a say in it. */
  bound(claimed: ClaimingTrigger, provenance: Provenance | null): Promise<BoundClaim> {
    if (provenance !== null) return this.#bind(claimed, provenance);
    const bound = this.#bound.get(claimed) ?? this.#bind(claimed, null);
    this.#bound.set(claimed, bound);
    return bound;
  }

  async #bind(claimed: ClaimingTrigger, provenance: Provenance | null): Promise<BoundClaim> {
    const { mapper, fault } = await mapperOf(claimed, this.#parts.versions);
    this.#lookups ??= this.#parts.lookups.bind();
    return { binding: bindingOf(claimed, provenance, mapper, await this.#lookups, this.#parts), fault };
  }
}

interface BoundClaim {
  readonly binding: Binding;
  /** Why the mapper cannot be used. */
  readonly fault: Reason | null;
}

async function prepareClaim(
  arrival: Arrival,
  found: SharedFinds,
  parts: ClaimParts,
  warning: string | undefined,
): Promise<PreparedClaim> {
  if (warning !== undefined)
    parts.log.warn({ drop: arrival.drop, file: arrival.path }, `${arrival.path}: ${warning}`);
  if (arrival.parentId === null && hasEscapes(arrival.path))
    return { opens: true, record: () => refuseName(arrival, parts) };
  const { outermost, depth } = await placeOf(arrival, parts.ledger);
  const provenance = await parts.provenance(outermost);
  const unpacking = parts.unpacking(arrival.drop);
  if (
    unpacking?.unpack === true &&
    provenance?.standardBody === undefined &&
    isContainerName(basename(arrival.path))
  )
    return {
      opens: true,
      record: () => claimContainer(arrival, { depth, unpacking, provenance, warning }, parts),
    };
  const { claimed, others, why } =
    provenance?.standardBody === undefined
      ? parts.match(arrival, provenance)
      : { claimed: standardClaim(provenance.standardBody), others: [], why: "" };
  if (claimed === null)
    return {
      opens: false,
      record: () => leaveUnmatched(arrival, why, parts),
      after: () => finishUnmatched(arrival, parts),
    };
  const paused = provenance?.standardBody === undefined ? parts.pausedTrigger(claimed.name) : null;
  // It waits where it lies, and is offered again when the trigger goes on: no rule for unmatched files is for it.
  if (paused !== null) return { opens: false, record: () => leaveUnmatched(arrival, paused, parts) };
  if (others.length > 0) {
    parts.log.warn(
      { drop: arrival.drop, file: arrival.path, trigger: claimed.name, others },
      "several triggers match; the first takes it",
    );
  }
  const { binding, fault } = await found.bound(claimed, provenance);
  const lane = parts.laneOf(claimed, arrival.drop, binding.service);
  const start = {
    ...(fault === null ? {} : { refusal: fault }),
    ...(warning === undefined ? {} : { warning }),
  };
  return { opens: true, record: () => parts.ledger.openRun(arrival.id, binding, lane, start) };
}

function bindingOf(
  claimed: ClaimingTrigger,
  provenance: Provenance | null,
  mapper: MapperIdentity | null,
  lookups: readonly BoundLookup[],
  parts: ClaimParts,
): Binding {
  return {
    trigger: claimed.name,
    service: claimed.service ?? provenance?.service ?? parts.defaultService,
    mapper: mapper ?? { name: claimed.mapper, version: "", digest: "" },
    settings: claimed.metadata,
    rows: claimed.rows,
    ...(claimed.rows === "strict" ? {} : { rejectShare: claimed.rejectShare }),
    limits: parts.limits,
    ...(claimed.version === undefined ? {} : { version: claimed.version }),
    ...(lookups.length === 0 ? {} : { lookups }),
    operationPrefix: provenance?.operationPrefix ?? claimed.operationPrefix,
  };
}

async function leaveUnmatched(arrival: Arrival, why: string, parts: ClaimParts): Promise<void> {
  if (arrival.state !== "unmatched" || arrival.reason !== why)
    await parts.ledger.advanceArrival(arrival.id, "unmatched", why);
}

/** By the drop's rule for unmatched files. What fails now is tried again when the triggers are asked again. */
async function finishUnmatched(arrival: Arrival, parts: ClaimParts): Promise<void> {
  const post = parts.dropEntry(arrival.drop);
  if (post === undefined || arrival.parentId !== null || post.finish.unmatched.action === "leave") return;
  const plan = parts.planFinish(post.finish.unmatched, arrival, `unmatched-${arrival.id}`);
  // One after another, so that the drop is there for others too.
  const turn = parts.finishing.enter();
  try {
    await turn.mine;
    await parts.ledger.fleet.assertDrop(arrival.drop);
    const signal = AbortSignal.timeout(FINISH_MS);
    if (post.guardMs > 0) {
      await setAsideUnmatched(arrival, plan, post, parts, signal);
      return;
    }
    const result = await finishFile(post.drop, arrival, plan, signal);
    const what = result === "done" ? (plan.action === "archive" ? "archived" : "deleted") : result;
    const detail = plan.action === "archive" ? `${arrival.path} → ${plan.to}` : arrival.path;
    await addSourceEvent(arrival, `source.${what}`, detail, parts);
  } catch (thrown) {
    parts.log.warn(
      { drop: arrival.drop, file: arrival.path, reason: wordsOf(thrown) },
      "an unmatched file could not be finished",
    );
  } finally {
    turn.pass();
  }
}

async function setAsideUnmatched(
  arrival: Arrival,
  plan: FinishPlan,
  { drop, guardMs }: DropEntry,
  parts: ClaimParts,
  signal: AbortSignal,
): Promise<void> {
  const before = await parts.ledger.finishedFiles.of(arrival.id);
  // Its time goes on, however often the triggers are asked again.
  if (before !== null && before.size === arrival.size && before.mtime === arrival.mtime) return;
  const aside = await setFileAside(drop, { entry: arrival, plan }, signal);
  if (aside.result !== "done" && aside.result !== "waits")
    return await addSourceEvent(arrival, `source.${aside.result}`, arrival.path, parts);
  const watched = beginWatch(aside, guardMs, parts.clock);
  const event =
    aside.result === "done"
      ? asideEvent(arrival.path, aside, watched.endsAt)
      : { what: "source.waits", detail: `${arrival.path} stays for now: ${aside.why}` };
  const { drop: name, path, size, mtime } = arrival;
  const file = { ...watched, drop: name, path, size, mtime, arrivalId: arrival.id };
  await parts.ledger.finishedFiles.watch(file, event);
}

function addSourceEvent(
  { id }: Arrival,
  what: string,
  detail: string,
  { ledger }: ClaimParts,
): Promise<void> {
  return ledger.addEvent({ arrivalId: id, runId: null, operationId: null, what, detail });
}

/** A mapper that is missing or cannot be loaded keeps back the files of its own trigger, and no others. */
async function mapperOf(
  trigger: ClaimingTrigger,
  versions: ClaimParts["versions"],
): Promise<{ readonly mapper: MapperIdentity | null; readonly fault: Reason | null }> {
  try {
    const mapper = await versions.current(trigger.mapper);
    if (mapper !== null) return { mapper, fault: null };
  } catch (thrown) {
    if (!(thrown instanceof ConfigError)) throw thrown;
    return { mapper: null, fault: reasonOf(thrown) };
  }
  const message = `the trigger ${trigger.name} names the mapper ${trigger.mapper}, which does not exist`;
  return { mapper: null, fault: { code: "HG-MAP-001", message } };
}

/** An entry came as its outermost container came. Depth 0 lies at the drop itself. */
async function placeOf(arrival: Arrival, ledger: Ledger): Promise<{ outermost: Arrival; depth: number }> {
  let outermost = arrival;
  let depth = 0;
  for (; outermost.parentId !== null; depth += 1) {
    const container = await ledger.arrival(outermost.parentId);
    if (container === null) break;
    outermost = container;
  }
  return { outermost, depth };
}

/** Its name says nothing to a trigger or a mapper, and may be another than its sender gave it. */
async function refuseName(arrival: Arrival, parts: ClaimParts): Promise<void> {
  const binding: Binding = {
    trigger: "(file name)",
    service: parts.defaultService,
    mapper: { name: "(none)", version: "", digest: "" },
    settings: {},
    rows: "strict",
    limits: parts.limits,
  };
  const refusal = { code: "HG-DROP-022", ...unusableName(arrival.path) };
  await parts.ledger.openRun(arrival.id, binding, `file names of ${arrival.drop}`, { refusal });
}

/** No trigger is asked for a container, only for its entries. Those of one drop are opened one after another. */
async function claimContainer(
  arrival: Arrival,
  place: {
    readonly depth: number;
    readonly unpacking: Unpacking;
    readonly provenance: Provenance | null;
    readonly warning: string | undefined;
  },
  parts: ClaimParts,
): Promise<void> {
  const { unpack: _unpack, depthMax, ...limits } = place.unpacking;
  const message = `the container is not opened: it lies in another, and ${depthMax === 1 ? "none that does" : `none deeper than ${depthMax}`} is`;
  await parts.ledger.openRun(
    arrival.id,
    {
      trigger: "(container)",
      service: parts.defaultService,
      mapper: { name: "(unpack)", version: "1", digest: "" },
      settings: {},
      rows: "strict",
      limits: parts.limits,
      unpack: limits,
    },
    `containers of ${arrival.drop}`,
    place.depth < depthMax
      ? {
          ...(place.warning === undefined ? {} : { warning: place.warning }),
          feeds: parts.lanesOf(arrival.drop, place.provenance?.service ?? parts.defaultService),
        }
      : { refusal: { code: "HG-PACK-005", message } },
  );
}

/**
 * The bodies of `POST /api/data` need no trigger. As at the service, a reading that cannot be stored does not keep the
 * others back; unlike there, it is reported.
 */
function standardClaim(settings: Readonly<Record<string, unknown>>): ClaimingTrigger {
  return { name: STANDARD_BODY_TRIGGER, mapper: "push-body", rows: "lenient", metadata: settings };
}
