/** Two hubs as real processes on one PostgreSQL and one place of stored files; one of them is lost. */
import { expect } from "vitest";
import { type HubCalls, temporaryDirectory } from "../hub/fixture.ts";
import { HubProcess } from "../hub/hub-process.ts";
import { shortcuts, standardCsv } from "./rig.ts";

const dateOf = (nth: number) => new Date(Date.UTC(2026, 2, 1) + nth * 60_000).toISOString();

type Hub = HubCalls & ReturnType<typeof shortcuts>;

export interface HubPair {
  readonly hubs: readonly [Hub, Hub];
  readonly processes: readonly [HubProcess, HubProcess];
  /** Versioned, which shows a reading that came twice. */
  readonly variableId: number;
  /** Sends one file with one reading; its id. The value of the reading is `nth`. */
  send(by: Hub, nth: number): Promise<number>;
  /** Each file is stored, and its reading has one version. `answered`: ids by values. */
  expectOnce(by: Hub, answered: ReadonlyMap<number, number>): Promise<void>;
  close(): Promise<void>;
}

/** `filesOf`: the section `files` of each hub; `directory` is removed at the end. */
export async function startPair(filesOf: (directory: string, nth: number) => object): Promise<HubPair> {
  const { path: directory, remove } = await temporaryDirectory();
  const processes = [0, 1].map((nth) => new HubProcess("platform", { files: filesOf(directory, nth) }));
  const [first, second] = processes;
  if (first === undefined || second === undefined) throw new Error("there are two");
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
    return { hubs: [one, other], processes: [first, second], variableId, close, ...callsFor(variableId) };
  } catch (thrown) {
    await close();
    throw thrown;
  }
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
