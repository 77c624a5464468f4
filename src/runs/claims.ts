/**
 * Matches settled arrivals with the triggers: each becomes a run with its binding, or is unmatched, with the
 * reason.
 */
import { basename } from "node:path/posix";
import type { Provenance } from "../drops/drop.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Arrival, Binding } from "../model.ts";
import { hasEscapes, isContainerName, unusableName } from "../support/file-names.ts";
import type { Turn } from "../support/turns.ts";
import { ClaimBindings, standardClaim } from "./claim-bindings.ts";
import type { ClaimParts, TriggerMatch, Unpacking } from "./claim-parts.ts";
import { finishUnmatched, leaveUnmatched } from "./unmatched-files.ts";

const NO_WARNINGS: ReadonlyMap<number, string> = new Map();
/** Claims that are recorded at one moment, so that they share a commit. */
const RECORDED_AT_ONCE = 250;

/**
 * Callback of pick-up: afterwards each arrival is `matched` or `unmatched`. Several drops may claim at once:
 * their claims are prepared side by side, and runs are opened in the order of the calls (invariant 7). Throws
 * the first error, after all claims have ended: files behind one that failed, of its lanes, wait for the next call.
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
    const bindings = new ClaimBindings(parts);
    const prepared: PreparedClaim[] = [];
    const unprepared = new Set<string>();
    for (const arrival of arrivals) {
      const claim = await prepareClaim(arrival, bindings, parts, warnings.get(arrival.id)).catch(noteFault);
      if (claim === undefined) hold(lanesBehind(arrival, parts), unprepared);
      else if (isFree(claim, unprepared)) prepared.push(claim);
    }
    await turn.mine;
    const recorded = await recordAll(prepared, noteFault, turn);
    if (recorded.some(({ opens }) => opens)) parts.onRun();
    // A file is changed only after the ledger recorded its claim.
    for (const { after } of recorded) await after?.().catch(noteFault);
  } finally {
    turn.pass();
  }
  if (faults.length > 0) throw faults[0];
}

/** Returns the claims that the ledger has now. The turn is passed when the last of them were sent. */
async function recordAll(
  prepared: readonly PreparedClaim[],
  noteFault: (thrown: unknown) => void,
  turn: Turn,
): Promise<readonly PreparedClaim[]> {
  const recorded: PreparedClaim[] = [];
  const unrecorded = new Set<string>();
  for (let begin = 0; begin < prepared.length; begin += RECORDED_AT_ONCE) {
    const end = begin + RECORDED_AT_ONCE;
    const due = prepared.slice(begin, end).filter((claim) => isFree(claim, unrecorded));
    const recording = due.map((claim) =>
      claim.record().then(
        () => recorded.push(claim),
        (thrown: unknown) => {
          noteFault(thrown);
          hold(claim.lanes, unrecorded);
        },
      ),
    );
    if (end >= prepared.length) turn.pass();
    await Promise.all(recording);
  }
  return recorded;
}

function isFree({ lanes }: PreparedClaim, held: ReadonlySet<string>): boolean {
  return held.size === 0 || !lanes.some((lane) => held.has(lane));
}

function hold(lanes: readonly string[], held: Set<string>): void {
  for (const lane of lanes) held.add(lane);
}

/** The callbacks of pick-up. */
export function claimsBy(parts: ClaimParts) {
  return {
    claim: (arrivals: readonly Arrival[], warnings?: ReadonlyMap<number, string>) =>
      claimArrivals(arrivals, parts, warnings),
    lanesOf: (drop: string, path: string) => lanesOfFile({ drop, path }, parts),
  };
}

/**
 * The lanes of a file at this path of a drop; of a container, all that its entries may have. None when no
 * trigger claims it.
 */
function lanesOfFile(file: Pick<Arrival, "drop" | "path">, parts: ClaimParts): readonly string[] {
  const unpacks = parts.unpacking(file.drop)?.unpack === true;
  if (unpacks && isContainerName(basename(file.path))) return parts.lanesOf(file.drop, parts.defaultService);
  const { claimed } = parts.match(file, null);
  if (claimed === null) return [];
  return [parts.laneOf(claimed, file.drop, claimed.service ?? parts.defaultService)];
}

/** Of a file whose claim failed; none where the same fault keeps them unknown. */
function lanesBehind(arrival: Arrival, parts: ClaimParts): readonly string[] {
  try {
    return lanesOfFile(arrival, parts);
  } catch {
    return [];
  }
}

interface PreparedClaim {
  /** Whether a run is opened. */
  readonly opens: boolean;
  /** Lanes of the run, or of what may come out of it. */
  readonly lanes: readonly string[];
  /** Sends its first query to the ledger before it returns. */
  record(): Promise<unknown>;
  after?(): Promise<void>;
}

async function prepareClaim(
  arrival: Arrival,
  bindings: ClaimBindings,
  parts: ClaimParts,
  warning: string | undefined,
): Promise<PreparedClaim> {
  if (warning !== undefined) parts.log.warn({ drop: arrival.drop, file: arrival.path }, `${arrival.path}: ${warning}`);
  if (arrival.parentId === null && hasEscapes(arrival.path))
    return { opens: true, lanes: [], record: () => refuseName(arrival, parts) };
  const { outermost, depth } = await placeOf(arrival, parts.ledger);
  const provenance = await parts.provenance(outermost);
  const unpacking = parts.unpacking(arrival.drop);
  if (unpacking?.unpack === true && provenance?.standardBody === undefined && isContainerName(basename(arrival.path)))
    return {
      opens: true,
      lanes: parts.lanesOf(arrival.drop, provenance?.service ?? parts.defaultService),
      record: () => claimContainer(arrival, { depth, unpacking, provenance, warning }, parts),
    };
  const match: TriggerMatch =
    provenance?.standardBody === undefined
      ? parts.match(arrival, provenance)
      : { claimed: standardClaim(provenance.standardBody), others: [], why: "" };
  const { claimed, others, why } = match;
  if (claimed === null && match.undecided === true)
    return { opens: false, lanes: [], record: () => leaveUnmatched(arrival, why, parts) };
  if (claimed === null)
    return {
      opens: false,
      lanes: [],
      record: () => leaveUnmatched(arrival, why, parts),
      after: () => finishUnmatched(arrival, parts),
    };
  const paused = provenance?.standardBody === undefined ? parts.pausedTrigger(claimed.name) : null;
  // The file stays at its drop, without the rule for unmatched files, and is offered again when the trigger
  // is resumed.
  if (paused !== null) return { opens: false, lanes: [], record: () => leaveUnmatched(arrival, paused, parts) };
  if (others.length > 0) {
    parts.log.warn(
      { drop: arrival.drop, file: arrival.path, trigger: claimed.name, others },
      "several triggers match; the first takes it",
    );
  }
  const { binding, fault } = await bindings.of(claimed, provenance);
  const lane = parts.laneOf(claimed, arrival.drop, binding.service);
  const start = {
    ...(fault === null ? {} : { refusal: fault }),
    ...(warning === undefined ? {} : { warning }),
  };
  return { opens: true, lanes: [lane], record: () => parts.ledger.openRun(arrival.id, binding, lane, start) };
}

/**
 * The outermost container of an entry, by which it came, and the depth of the entry: 0 for a file at the drop
 * itself.
 */
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

/**
 * Opens a refused run for a name that is not valid text, which no trigger or mapper can read as its sender
 * meant it.
 */
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

/**
 * Triggers are asked for the entries of a container, not for itself. The containers of one drop are opened
 * one after another.
 */
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
  const rule = depthMax === 1 ? "only the outermost one is" : `none deeper than ${depthMax} is`;
  const message = `the container is not opened: it is within another, and ${rule}`;
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
