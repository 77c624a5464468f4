/** Two hubs as real processes on one PostgreSQL and one place of stored files; one of them is lost. */
import { setTimeout as delay } from "node:timers/promises";
import { expect } from "vitest";
import { type HubCalls, temporaryDirectory } from "../hub/fixture.ts";
import { HubProcess } from "../hub/hub-process.ts";
import { shortcuts, standardCsv } from "./rig.ts";

const dateOf = (nth: number) => new Date(Date.UTC(2026, 2, 1) + nth * 60_000).toISOString();

const KILLED_AFTER = 30;
/** Files of one meter are delivered one after another. */
const METERS = 20;
/** The runs of a killed hub are taken over when its lease of thirty seconds has lapsed. */
const STORED_MS = 180_000;
/** Between two files of a sender, so that it is not the work behind a kill that takes the time of the test. */
const SENDER_PAUSE_MS = 50;

type Hub = HubCalls & ReturnType<typeof shortcuts>;

export interface HubPair {
  readonly hubs: readonly [Hub, Hub];
  /** Sends one file with one reading; its id. The value of the reading is `nth`. */
  send(by: Hub, nth: number): Promise<number>;
  /** Sends files to both, and kills the first hub after thirty answers; what was answered: ids by values. */
  sendUntilFirstIsKilled(): Promise<ReadonlyMap<number, number>>;
  /** Sends files to both, and kills and starts the one or the other as often as said; ids by values. */
  sendWhileKilledInTurn(times: number, chance: () => number): Promise<ReadonlyMap<number, number>>;
  /** Each file is stored, and its reading has one version. `answered`: ids by values. */
  expectOnce(by: Hub, answered: ReadonlyMap<number, number>): Promise<void>;
  close(): Promise<void>;
}

/** `filesOf`: the section `files` of each hub; `directory` is removed at the end. */
export async function startPair(filesOf: (directory: string, nth: number) => object): Promise<HubPair> {
  const { path: directory, remove } = await temporaryDirectory();
  const processes = [0, 1].map((nth) => new HubProcess("platform", { files: filesOf(directory, nth) }));
  const [first] = processes;
  if (first === undefined) throw new Error("there are two");
  const close = async () => {
    for (const one of processes) await one.end("SIGKILL");
    await remove();
  };
  try {
    const hubs: Hub[] = [];
    const variables: number[] = [];
    for (const one of processes) {
      const calls = await one.run(directory);
      hubs.push({ ...calls, ...shortcuts(calls) });
    }
    const [one, other] = hubs;
    if (one === undefined || other === undefined) throw new Error("there are two");
    for (let meter = 0; meter < METERS; meter += 1) {
      // Versioned, which shows a reading that came twice.
      const id = await one.variable(`K-${meter}`);
      await one.ok("PATCH", `/variables/${id}`, { body: { isVersioned: true } });
      variables.push(id);
    }
    await other.trigger("pair_", "standard");
    const sendUntilFirstIsKilled = () => sendUntilKilled([one, other], first, send);
    const sendWhileKilledInTurn = (times: number, chance: () => number) =>
      sendWhileKilled({ hubs, processes, directory, send }, times, chance);
    // The list itself, as a hub that is started again has another address.
    return {
      hubs: hubs as [Hub, Hub],
      close,
      sendUntilFirstIsKilled,
      sendWhileKilledInTurn,
      send,
      expectOnce: expectOnceIn(variables),
    };
  } catch (thrown) {
    await close();
    throw thrown;
  }
}

async function sendUntilKilled(hubs: HubPair["hubs"], first: HubProcess, sendOne: HubPair["send"]) {
  const answered = new Map<number, number>();
  const killed = first.killed();
  let isKilled = false;
  let next = 0;
  const send = async (hub: Hub) => {
    while (!isKilled) {
      const nth = next++;
      await sendOne(hub, nth).then(
        (id) => answered.set(nth, id),
        () => null, // What was not answered may be lost.
      );
      // In the middle of the work of both, however fast they are.
      if (answered.size >= KILLED_AFTER) first.child?.kill("SIGKILL");
    }
  };
  const [one, other] = hubs;
  const senders = [send(one), send(one), send(other), send(other)];
  expect(await killed).toBe("SIGKILL");
  isKilled = true;
  await Promise.all(senders);
  return answered;
}

interface KilledPair {
  /** Entries are replaced when a hub is started again. */
  readonly hubs: Hub[];
  readonly processes: readonly HubProcess[];
  readonly directory: string;
  readonly send: HubPair["send"];
}

const LONGEST_LIFE_MS = 2_000;

async function sendWhileKilled(pair: KilledPair, times: number, chance: () => number) {
  const { hubs, processes } = pair;
  const answered = new Map<number, number>();
  let next = 0;
  let isOver = false;
  const sendTo = async (at: number) => {
    while (!isOver) {
      const nth = next++;
      const hub = hubs[at] as Hub;
      await pair.send(hub, nth).then(
        (id) => answered.set(nth, id),
        () => null, // What was not answered may be lost.
      );
      await delay(SENDER_PAUSE_MS);
    }
  };
  const senders = [0, 0, 1, 1].map(sendTo);
  try {
    for (let killed = 0; killed < times; killed += 1) {
      await delay(chance() * LONGEST_LIFE_MS);
      const at = chance() < 0.5 ? 0 : 1;
      await processes[at]?.end("SIGKILL");
      // The other is alone for a moment, or not at all.
      await delay(chance() * LONGEST_LIFE_MS);
      const calls = await (processes[at] as HubProcess).run(pair.directory);
      hubs[at] = { ...calls, ...shortcuts(calls) };
    }
  } finally {
    isOver = true;
    await Promise.all(senders);
  }
  return answered;
}

const send: HubPair["send"] = (by, nth) =>
  by.store(`pair_${nth}.csv`, standardCsv(`K-${nth % METERS}`, dateOf(nth), nth));

function expectOnceIn(variables: readonly number[]): HubPair["expectOnce"] {
  return async (by, answered) => {
    const stateOf = async (id: number): Promise<string> => (await by.get(`/storage/${id}`)).state;
    for (const id of answered.values())
      await expect.poll(() => stateOf(id), { message: `file ${id}`, timeout: STORED_MS }).toBe("stored");
    const query = { VariableIds: variables, AllVersions: true, "Paging.ItemsPerPage": 10_000 };
    const rows: { rawValue: number }[] = await by.get("/data", query);
    const counts = Map.groupBy(rows, ({ rawValue }) => rawValue);
    for (const [value, versions] of counts) expect(versions, `versions of ${value}`).toHaveLength(1);
    expect([...answered.keys()].filter((value) => !counts.has(value))).toEqual([]);
  };
}
