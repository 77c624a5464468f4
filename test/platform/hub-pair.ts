/** Two hubs as real processes on one PostgreSQL and one place of stored files; one of them is lost. */
import { expect } from "vitest";
import { type HubCalls, temporaryDirectory } from "../hub/fixture.ts";
import { HubProcess } from "../hub/hub-process.ts";
import { shortcuts, standardCsv } from "./rig.ts";

const dateOf = (nth: number) => new Date(Date.UTC(2026, 2, 1) + nth * 60_000).toISOString();

const KILLED_AFTER = 30;

type Hub = HubCalls & ReturnType<typeof shortcuts>;

export interface HubPair {
  readonly hubs: readonly [Hub, Hub];
  /** Versioned, which shows a reading that came twice. */
  readonly variableId: number;
  /** Sends one file with one reading; its id. The value of the reading is `nth`. */
  send(by: Hub, nth: number): Promise<number>;
  /** Sends files to both, and kills the first hub after thirty answers; what was answered: ids by values. */
  sendUntilFirstIsKilled(): Promise<ReadonlyMap<number, number>>;
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
    for (const one of processes) {
      const calls = await one.run(directory);
      hubs.push({ ...calls, ...shortcuts(calls) });
    }
    const [one, other] = hubs;
    if (one === undefined || other === undefined) throw new Error("there are two");
    const variableId = await one.variable("K-1");
    await one.ok("PATCH", `/variables/${variableId}`, { body: { isVersioned: true } });
    await other.trigger("pair_", "standard");
    const calls = callsFor(variableId);
    const sendUntilFirstIsKilled = () => sendUntilKilled([one, other], first, calls.send);
    return { hubs: [one, other], variableId, close, sendUntilFirstIsKilled, ...calls };
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

function callsFor(variableId: number): Pick<HubPair, "send" | "expectOnce"> {
  return {
    send: (by, nth) => by.store(`pair_${nth}.csv`, standardCsv("K-1", dateOf(nth), nth)),
    async expectOnce(by, answered) {
      for (const id of answered.values()) await by.became(id, "stored");
      const query = { VariableId: variableId, AllVersions: true, "Paging.ItemsPerPage": 10_000 };
      const rows: { rawValue: number }[] = await by.get("/data", query);
      const counts = Map.groupBy(rows, ({ rawValue }) => rawValue);
      for (const [value, versions] of counts) expect(versions, `versions of ${value}`).toHaveLength(1);
      expect([...answered.keys()].filter((value) => !counts.has(value))).toEqual([]);
    },
  };
}
