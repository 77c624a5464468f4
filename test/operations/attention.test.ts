import { expect, test } from "vitest";
import type { DropState, Run } from "#gateway/model.ts";
import { type AttentionSources, findAttention } from "#gateway/operations/attention.ts";
import type { LaneWait } from "#gateway/operations/waiting-lanes.ts";

const AT = "2026-03-01T00:00:00.000Z";
const spool = {
  usedBytes: 10,
  sharedBytes: 0,
  held: { runs: 0, bytes: 0 },
  budgetBytes: 100,
  freeBytes: 1,
  full: null,
};
const dropState = (change: Partial<DropState>) =>
  ({ drop: "field", paused: null, lastError: null, lastCompletePoll: AT, ...change }) as DropState;
const failing = { code: "HG-DROP-002", message: "it does not answer", hint: null };

const quiet: AttentionSources = {
  ledger: {
    restingIn: async () => [],
    finishedFiles: { occupied: async () => [] },
    settlingAges: async () => [],
    files: { unmatched: async () => [], unmatchedCount: async () => ({ count: 0 }) },
  } as unknown as AttentionSources["ledger"],
  node: null,
  drops: () => [dropState({})],
  services: () => [{ name: "hub", state: { state: "up", reason: null } }],
  clocks: () => [],
  late: () => [],
  lanes: async () => [],
  notices: async () => [],
  triggers: async () => [],
  pauses: () => [],
  spool: async () => spool,
  spoolShare: 0.8,
  unfinished: { list: () => [], note: () => undefined, isKnown: true },
  refusedConfiguration: () => null,
};
const found = async (change: Partial<AttentionSources>) => {
  const { concerns, unknown } = await findAttention({ ...quiet, ...change });
  return { concerns: concerns.map(({ kind, text }) => `${kind}: ${text}`), unknown: [...unknown] };
};

test("nothing needs attention where everything works", async () => {
  expect(await found({})).toEqual({ concerns: [], unknown: [] });
});

const stuck: LaneWait = {
  ...{ lane: "l", since: AT, waitedMs: 1, overdue: true, behind: 1, reason: "why" },
  run: { id: "a", path: "a.csv", drop: "field", state: "mapped" } as Run,
};

test("a late file, a waiting lane, a drop, a service and a nearly full spool each need attention", async () => {
  const { concerns } = await found({
    late: () => [{ trigger: "daily", due: AT, lastSeen: null }],
    lanes: async () => [stuck],
    drops: () => [dropState({ lastError: failing })],
    services: () => [{ name: "hub", state: { state: "down", reason: "refused" } }],
    clocks: () => [{ service: "hub", words: "the clock is off", hint: "Set it." }],
    spool: async () => ({ ...spool, usedBytes: 80 }),
  });
  expect(concerns).toEqual([
    `late: trigger daily expected a file by ${AT}; none has come yet`,
    `lane: a.csv at field (run a, mapped) has not moved since ${AT}, and 1 run waits behind it: why`,
    "drop: the drop field cannot be polled: it does not answer",
    "service: the service hub cannot be used: refused",
    "service: the clock is off. Set it.",
    "spool: the spool is nearly full: 80 % of its budget is in use",
  ]);
});

test("a drop is named once where the reason names it", async () => {
  const reason = "the folder /in of drop field cannot be opened";
  const { concerns } = await found({ drops: () => [dropState({ lastError: { ...failing, message: reason } })] });
  expect(concerns).toEqual([`drop: ${reason}`]);
});

test("a drop that an operator paused is in order, and the state of one without a poll is unknown", async () => {
  expect(await found({ drops: () => [dropState({ paused: "it is paused", lastError: failing })] })).toEqual({
    concerns: [],
    unknown: [],
  });
  const fresh = await found({
    drops: () => [dropState({ lastCompletePoll: null })],
    services: () => [{ name: "hub", state: null }],
  });
  expect(fresh).toEqual({ concerns: [], unknown: ["drop field", "service hub"] });
});

const run = (id: string, changedAt: string, more: Partial<Run> = {}) =>
  ({ id, path: `${id}.csv`, drop: "field", state: "mapped", reason: null, changedAt, ...more }) as Run;
const bound = (service: string) => ({ binding: { service, trigger: "t" } as Run["binding"] });

test("each node of a fleet reports its own runs", async () => {
  const resting = ["one", "other"].map((node) => ({
    run: run(node, AT, { state: "quarantined", node, ...bound("hub") }),
    arrival: { goneAt: null },
  }));
  const fleet = { nodes: async () => [{ node: "one", drops: ["field"] }] };
  const unmatched = async () => [{ id: 7, path: "notes.txt", drop: "field" }];
  const files = { ...quiet.ledger.files, unmatched };
  const ledger = { ...quiet.ledger, restingIn: async () => resting, fleet, files } as unknown as typeof quiet.ledger;
  expect((await found({ ledger, node: "other" })).concerns).toEqual(["quarantined: other.csv at field is quarantined"]);
  expect((await found({ ledger, node: "one" })).concerns).toEqual([
    "quarantined: one.csv at field is quarantined",
    "unmatched: no trigger claims notes.txt at field",
  ]);
  expect((await found({ ledger })).concerns).toHaveLength(3);
});

test("triggers of a service that cannot work or be read need attention", async () => {
  const listed = { service: "hub", listedAt: AT, fault: null, emptySince: null, count: 2, unusable: [] };
  expect(await found({ triggers: async () => [listed] })).toEqual({ concerns: [], unknown: [] });
  const unusable = [{ trigger: "hub:2", reason: "its mapper is missing" }];
  const { concerns } = await found({ triggers: async () => [{ ...listed, fault: "HTTP 503", unusable }] });
  expect(concerns).toEqual([
    `service: the triggers of the service hub: 2, listed at ${AT}, stay in force, ` +
      "since they cannot be read now: HTTP 503",
    "trigger: the trigger hub:2 cannot be used: its mapper is missing",
  ]);
});

test("files that another ledger had delivered, and replaced ones, need attention, with one of them", async () => {
  const notices = [
    { kind: "repeated", drop: "field", files: 2, example: "01kag-1", latestAt: AT } as const,
    { kind: "replaced", drop: "field", files: 1, example: "day.csv", latestAt: AT } as const,
  ];
  expect((await found({ notices: async () => notices })).concerns).toEqual([
    "drop: drop field: 2 files of the last day had already been delivered by operations that this ledger does not " +
      "have (01kag-1): it was lost or restored, or another gateway takes the files of this drop",
    "drop: drop field: 1 file of the last day was replaced by other content after the gateway had claimed it, at " +
      `last at ${AT} (day.csv): what was fetched is delivered, and the other content is an arrival of its own. ` +
      "Let the writer give each file a name of its own",
  ]);
});
