/** The overview: the flow with its backlogs and rates, and the handlers of history and calendar. */

import { isoInstant } from "#core/clock.ts";
import { shareQuery } from "#core/shared-query.ts";
import type { GatewayConfig } from "../config.ts";
import type { Backlog } from "../ledger/ledger.ts";
import { nodeName } from "../ledger/options.ts";
import type { DropState, RunState } from "../model.ts";
import type { HandlersOf } from "../operations/api/endpoint.ts";
import type { Overview, overviewEndpoints } from "../operations/api/overview.ts";
import { dropWords, type HealthPart, isPaused } from "../operations/state-of-work.ts";
import type { QueryParts } from "../operator-queries.ts";
import { RUN_STATES, type RunFacts } from "../states.ts";
import { calendarOf } from "./calendar.ts";
import { RunHistory } from "./history.ts";
import type { SharedInbox } from "./inbox.ts";

type OverviewParts = Pick<
  QueryParts,
  "ledger" | "drops" | "scheduler" | "quota" | "observers" | "clock" | "log" | "startedAt"
> & { health(): Promise<readonly HealthPart[]>; readonly inbox: SharedInbox };

export function overviewHandlers(config: GatewayConfig, parts: OverviewParts): HandlersOf<typeof overviewEndpoints> {
  const history = new RunHistory(parts.ledger, parts.clock);
  // All pages ask when something has changed.
  const overview = shareQuery(() => overviewOf(config, parts));
  return {
    overview: () => overview.within(SHARED_MS),
    history: ({ query }) => history.of(query.period),
    calendar: ({ query }) => calendarOf(config.triggers, query, parts),
  };
}

const SHARED_MS = 500;

async function overviewOf(config: GatewayConfig, parts: OverviewParts): Promise<Overview> {
  const { ledger, drops, quota, clock } = parts;
  const backlog = await ledger.backlog();
  const { usedBytes, budgetBytes, freeBytes, full } = await quota.state();
  const self = nodeName(config.ledger);
  return {
    at: isoInstant(clock.now()),
    flow: {
      drops: drops.statuses().map(dropFacts),
      stages: stagesOf(backlog, (state) => parts.observers.rates.perMinute(state)),
      services: servicesOf(config, backlog, parts),
    },
    // A disk that was not counted yet has no number that JSON could hold.
    spool: { usedBytes, budgetBytes, freeBytes: Number.isFinite(freeBytes) ? freeBytes : null, full },
    nodes: (await ledger.fleet.nodes()).map((one) => ({
      node: one.node,
      drops: [...one.drops],
      runs: one.runs,
      seenAt: one.lastSeenAt,
      isAlive: one.alive,
      isSelf: one.node === self,
    })),
    health: [...(await parts.health())],
    attention: (await parts.inbox.recent()).total,
  };
}

function dropFacts(state: DropState): Overview["flow"]["drops"][number] {
  return {
    name: state.drop,
    kind: state.kind,
    state: isPaused(state) ? "paused" : state.lastError === null ? "ok" : "trouble",
    words: dropWords(state),
    waiting: state.settlingCount + state.leftCount,
  };
}

/** Of each stage the states of its runs, those that it works on, and the state in which a run leaves it. */
const STAGES = [
  {
    name: "mapping",
    has: ({ index }) => index === "runs_intake",
    isRunning: ({ stage }) => stage === null,
    to: "mapped",
  },
  {
    name: "delivery",
    has: ({ stage }) => stage === "delivery",
    isRunning: ({ next }) => next.includes("accepted"),
    to: "accepted",
  },
  { name: "confirmation", has: ({ stage }) => stage === "confirming", isRunning: () => true, to: "confirmed" },
] as const satisfies readonly {
  name: string;
  has: (facts: RunFacts) => boolean;
  isRunning: (facts: RunFacts) => boolean;
  to: RunState;
}[];

function stagesOf(backlog: readonly Backlog[], ratePerMinute: (state: RunState) => number): Overview["flow"]["stages"] {
  const count = (isMeant: (facts: RunFacts) => boolean) =>
    backlog.reduce((sum, { state, runs }) => sum + (isMeant(RUN_STATES[state]) ? runs : 0), 0);
  return STAGES.map(({ name, has, isRunning, to }) => ({
    name,
    running: count((facts) => has(facts) && isRunning(facts)),
    waiting: count((facts) => has(facts) && !isRunning(facts)),
    ratePerMinute: ratePerMinute(to),
  }));
}

function servicesOf(
  { services }: GatewayConfig,
  backlog: readonly Backlog[],
  { scheduler, observers }: OverviewParts,
): Overview["flow"]["services"] {
  const waits = scheduler.serviceWaits();
  const known = observers.services.states();
  return services.map(({ name }) => {
    const state = known.get(name);
    const wait = waits.get(name) ?? null;
    return {
      name,
      state: state?.state ?? "unused",
      reason: wait ?? state?.reason ?? null,
      breaker: wait === null ? "closed" : "open",
      lastError: state?.lastReason ?? null,
      waiting: backlog
        .filter((one) => one.service === name && RUN_STATES[one.state].stage === "delivery")
        .reduce((sum, { runs }) => sum + runs, 0),
    };
  });
}
