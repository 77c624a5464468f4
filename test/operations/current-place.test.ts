/** Where a file is now follows from what became of it, and not from what was planned. */

import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { silentLog } from "#core/log.ts";
import { loadGatewayConfig } from "#gateway/config.ts";
import { type Gateway, startGateway } from "#gateway/gateway.ts";
import { currentPlace } from "#gateway/operations/run-actions.ts";
import { GatewayRig, oneReading, trigger, until } from "../runs/gateway-rig.ts";
import { headgate } from "../runs/in-process.ts";

let rig: GatewayRig;
beforeAll(async () => {
  rig = await GatewayRig.start();
});
afterAll(() => rig.close());

const GONE = "2026-03-01T00:00:00Z";
const event = (what: string, detail = "") => ({ what, detail });

test.each([
  ["as long as nothing was done with it", [], null, "a → b; c.csv"],
  ["that left its drop by itself", [event("run.claimed")], GONE, "no longer at its drop"],
  ["that was archived", [event("source.archived", "a → b; c.csv → archive/x.csv")], GONE, "archive/x.csv"],
  [
    "that a replay left where it was archived",
    [event("source.archived", "a → b; c.csv → archive/x.csv"), event("source.left", "a → b; c.csv")],
    GONE,
    "archive/x.csv",
  ],
  [
    "that was left at first",
    [event("source.left"), event("source.archived", "a → b; c.csv → archive/x.csv")],
    GONE,
    "archive/x.csv",
  ],
  [
    "that was set aside",
    [event("source.aside", "a → b; c.csv → .headgate/x; copied to archive/x.csv after then, unless it changes")],
    GONE,
    ".headgate/x",
  ],
  [
    "that was set aside on the way to an archive that keeps its name",
    [
      event(
        "source.aside",
        "a → b; c.csv → .headgate/x; copied to archive/a → b; c.x.csv after then, unless it changes",
      ),
    ],
    GONE,
    ".headgate/x",
  ],
  [
    "that was brought back since it grew",
    [
      event("source.archived", "a → b; c.csv → archive/x.csv"),
      event("source.returned", "archive/x.csv → a → b; c.csv"),
    ],
    null,
    "a → b; c.csv",
  ],
  [
    "that was overwritten before",
    [event("source.changed")],
    GONE,
    "replaced at its drop by other content, before it was finished",
  ],
  ["that was deleted", [event("source.deleted")], GONE, "deleted"],
])("a file %s", (_, events, goneAt, place) => {
  expect(currentPlace({ path: "a → b; c.csv", goneAt }, events)).toBe(place);
});

async function placeOf(gateway: Gateway, path: string, nth = 0): Promise<string> {
  const traced = (await gateway.ledger.trace(path)).toSorted((one, other) => one.arrival.id - other.arrival.id)[nth];
  if (traced === undefined) throw new Error("no file");
  return currentPlace(traced.arrival, traced.events);
}

test("a file that was gone before its end is in no archive, and a replay takes another from its archive", async () => {
  const variable = await rig.variable("replayed");
  rig.configure({ triggers: [trigger("standard")] });
  const onEvent = ({ what, arrivalId }: { readonly what: string; readonly arrivalId: number }) => {
    if (what === "run.accepted" && arrivalId === goneId) rmSync(join(rig.folder, "in/gone.csv"), { force: true });
  };
  let goneId = -1;
  const gateway = await startGateway(loadGatewayConfig(rig.config), { log: silentLog, onEvent });
  const idle = () => until("it is idle", () => gateway.isIdle());
  try {
    rig.put("in/kept.csv", oneReading(variable, 1));
    await until("it is delivered", async () => (await rig.stored(variable))["2026-03-01"] === 1);
    await idle();
    const place = await placeOf(gateway, "kept.csv");
    expect(existsSync(join(rig.folder, "in", place))).toBe(true);
    goneId = ((await gateway.ledger.trace("kept.csv"))[0]?.arrival.id ?? 0) + 1;
    rig.put("in/gone.csv", oneReading(variable, 2, "2026-03-02T00:00:00Z"));
    await until("it is delivered", async () => (await rig.stored(variable))["2026-03-02"] === 2);
    await idle();
    const [gone] = await gateway.ledger.trace("gone.csv");
    expect(gone?.events.filter(({ what }) => what.startsWith("source."))).toMatchObject([
      { what: "source.gone", detail: "gone.csv" },
    ]);

    const kept = join(rig.folder, "state/spool/kept");
    for (const name of readdirSync(kept)) rmSync(join(kept, name));
    const replay = await headgate("replay", "kept.csv", "-c", rig.config, "--no-diff", "--overwrite");
    expect(replay).toMatchObject({ code: 0 });
    await until("the replay ends", async () => {
      const runs = (await gateway.ledger.trace("kept.csv"))[0]?.runs ?? [];
      return runs.length === 2 && /^(confirmed|quarantined)$/.test(runs[1]?.run.state ?? "");
    });
    expect((await gateway.ledger.trace("kept.csv"))[0]?.runs[1]?.run).toMatchObject({
      state: "confirmed",
      reason: null,
    });
    expect(await placeOf(gateway, "kept.csv")).toBe(place);
  } finally {
    await gateway.stop();
  }
});

test("a file that is overwritten between its claim and its end is not said to be archived", async () => {
  const variable = await rig.variable("overwritten");
  rig.configure({ triggers: [trigger("standard")] });
  let isFirst = true;
  const onEvent = ({ what }: { readonly what: string }) => {
    if (what !== "run.accepted" || !isFirst) return;
    isFirst = false;
    rig.put(
      "in/a.csv",
      `${oneReading(variable, 2)}${oneReading(variable, 3, "2026-03-02T00:00:00Z").split("\n")[1]}\n`,
    );
  };
  const gateway = await startGateway(loadGatewayConfig(rig.config), { log: silentLog, onEvent });
  try {
    rig.put("in/a.csv", oneReading(variable, 1));
    await until("both are stored", async () => (await rig.stored(variable))["2026-03-02"] === 3);
    const second = async () => await placeOf(gateway, "a.csv", 1);
    await until("the second has left its path", async () => (await second()) !== "a.csv");
    expect(existsSync(join(rig.folder, "in", await second()))).toBe(true);
    expect(await placeOf(gateway, "a.csv")).toBe("replaced at its drop by other content, before it was finished");
  } finally {
    await gateway.stop();
  }
});
