/** A file whose name cannot be text, from its drop to the person who sees to it. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Gateway } from "#gateway/gateway.ts";
import { zip } from "./archives.ts";
import { drop, GatewayRig, oneReading, until } from "./gateway-rig.ts";
import { headgate } from "./in-process.ts";

let rig: GatewayRig;
beforeEach(async () => {
  rig = await GatewayRig.start();
});
afterEach(() => rig.close());

const idle = (gateway: Gateway) => until("the gateway is idle", () => gateway.isIdle());
const put = (name: string, content: string) => {
  mkdirSync(join(rig.folder, "in"), { recursive: true });
  writeFileSync(Buffer.concat([Buffer.from(join(rig.folder, "in/")), Buffer.from(name, "latin1")]), content);
};

it("is quarantined with a hint, reported by check, left at its path, and processed with names: latin-1", async () => {
  const variable = await rig.variable("named");
  put("Z\xE4hler.csv", oneReading(variable, 4));
  put("two\nlines.csv", oneReading(variable, 5));
  put("esc\x1B[2Jape.csv", oneReading(variable, 6));
  const archive = { archive: "archive" };
  const finish = { delivered: archive, quarantined: archive, unmatched: archive };
  let gateway = await rig.open({ drops: [drop("in", { finish })] });
  await idle(gateway);
  expect(await rig.stored(variable)).toEqual({});
  expect(await gateway.summary()).toMatchObject({ files: { quarantined: 3 } });
  expect(await gateway.concerns()).toHaveLength(3);
  const { stdout } = await headgate("quarantine", "-c", rig.config);
  for (const words of ["Z\\xE4hler.csv", "two\\x0Alines.csv", "esc\\x1B[2Jape.csv", "not UTF-8", "`names: latin-1`"])
    expect(stdout).toContain(words);
  const checked = JSON.parse((await headgate("check", "-c", rig.config, "--json")).stdout);
  expect(checked).toContainEqual(expect.objectContaining({ about: "names", level: "warning" }));
  expect((await headgate("ledger", "check", "-c", rig.config)).code).toBe(0);

  gateway = await rig.open({ drops: [drop("in", { finish, names: "latin-1" })] });
  await until("the meter's file is stored", async () => (await rig.stored(variable))["2026-03-01"] === 4);
  await idle(gateway);
  const [taken] = await gateway.ledger.arrivalsAt("Zähler.csv");
  const run = await gateway.ledger.runOf(taken?.id ?? 0);
  expect(run?.finishPlan).toMatchObject({ action: "archive", to: `archive/Zähler.${run?.id}.csv` });
  expect(taken?.goneAt).not.toBeNull();
  expect((await gateway.concerns()).join("\n")).not.toContain("hler.csv");
});

it("within a ZIP whose packer wrote Latin-1 is taken with names: latin-1 of the drop", async () => {
  const variable = await rig.variable("packed");
  const nameBytes = Buffer.from("Z\xE4hler.csv", "latin1");
  const entry = { name: "x", nameBytes, flagged: false, content: oneReading(variable, 4) };
  rig.put("in/box.zip", zip([entry]));
  const gateway = await rig.open({ drops: [drop("in", { names: "latin-1" })] });
  await until("the meter's file is stored", async () => (await rig.stored(variable))["2026-03-01"] === 4);
  const paths = (await gateway.ledger.recentRuns(9)).map(({ path }) => path);
  expect(paths).toContain("box.zip!/Zähler.csv");
});
