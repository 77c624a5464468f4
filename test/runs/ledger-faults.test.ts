/** A moment in which the ledger cannot be read or written costs a pause, and neither the process nor a run. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { TransientError } from "#core/errors.ts";
import { createLog } from "#core/log.ts";
import type { Gateway } from "#gateway/gateway.ts";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import { GatewayRig, oneReading, until } from "./gateway-rig.ts";

let rig: GatewayRig;
let said: string[];
beforeEach(async () => {
  rig = await GatewayRig.start();
  said = [];
});
afterEach(() => rig.close());

const log = createLog("info", { write: (line) => said.push(line) });

function fault(operation: string): TransientError {
  const message = "the disk was full for a moment";
  return new TransientError("HG-LEDG-004", { operation, subject: "ledger", message });
}

/** The steps of runs use what is changed here. */
const changeable = ({ ledger }: Gateway) => ledger as { -readonly [Name in keyof Ledger]: Ledger[Name] };

async function isStored(gateway: Gateway, path: string): Promise<boolean> {
  const runs = await gateway.ledger.recentRuns(10);
  return runs.some((run) => run.path === path && run.state === "confirmed");
}

it("takes up other files when a run cannot be read after its step", async () => {
  const variable = await rig.variable("meter");
  const gateway = await rig.open({}, log);
  rig.put("in/a.csv", oneReading(variable, 1));
  await until("the first is stored", () => isStored(gateway, "a.csv"));
  const ledger = changeable(gateway);
  const read = ledger.run;
  let faults = 0;
  ledger.run = async (id) => {
    const run = await read(id);
    if (run?.state !== "cancelled" || faults > 0) return run;
    faults += 1;
    throw fault("read ledger");
  };
  rig.put("in/a.csv", oneReading(variable, 1), new Date("2026-03-02"));
  await until("a read failed", async () => faults > 0);
  rig.put("in/b.csv", oneReading(variable, 2, "2026-03-02T00:00:00Z"));
  await until("the other is stored", () => isStored(gateway, "b.csv"));
  expect(said.filter((line) => line.includes("the ledger cannot be used for the run: the disk was full"))).toHaveLength(
    1,
  );
  await until("nothing is left to do", () => gateway.isIdle());
});

it("maps a file again whose mapping could neither be recorded nor taken back", async () => {
  const variable = await rig.variable("meter");
  const gateway = await rig.open({}, log);
  const ledger = changeable(gateway);
  const { advanceRun, advanceRuns } = ledger;
  const faults = { record: 0, return: 0 };
  ledger.advanceRuns = async (advances) => {
    if (faults.record > 0 || advances[0]?.from !== "mapping") return await advanceRuns(advances);
    faults.record += 1;
    return advances.map(() => ({ run: null, why: "fault", thrown: fault("write ledger") }));
  };
  ledger.advanceRun = async (id, from, to, change) => {
    if (faults.return > 0 || from !== "mapping") return await advanceRun(id, from, to, change);
    faults.return += 1;
    throw fault("write ledger");
  };
  rig.put("in/a.csv", oneReading(variable, 1));
  await until("the file is stored", () => isStored(gateway, "a.csv"));
  expect(faults).toEqual({ record: 1, return: 1 });
  expect(await rig.stored(variable)).toEqual({ "2026-03-01": 1 });
  const [file] = await gateway.ledger.trace("a.csv");
  expect(file?.events.map(({ detail }) => detail)).toContain("mapping was interrupted and is done again");
});
