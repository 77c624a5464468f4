/** Permissions that flip, with the daemon under a user who is not root, whom modes mean something to. */
import { execFile } from "node:child_process";
import { chmod, chown, readdir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readingsOf } from "./readings.ts";
import { localDrop, Rig, type Stage } from "./rig.ts";

const NOBODY = 65_534;
const uid = process.getuid?.() === 0 ? NOBODY : undefined;

let rig: Rig;
beforeAll(async () => {
  rig = await Rig.start();
});
afterAll(() => rig.close());

function gateway(stage: Stage, timeout: string) {
  return stage.gateway(["--until-idle", "--json", "--timeout", timeout], { uid }).ended();
}

/** Whether the user of the daemon may do it. */
async function may(program: string, ...args: readonly string[]): Promise<boolean> {
  const as = uid === undefined ? {} : { uid, gid: uid };
  return promisify(execFile)(program, args, as).then(
    () => true,
    (thrown: unknown) => {
      expect(String(thrown)).toContain("Permission denied");
      return false;
    },
  );
}

/** State of the one run of a file, and how often it was delivered. */
async function standing(stage: Stage, name: string) {
  const files = await stage.inspect((ledger) => ledger.trace(name));
  return files.flatMap(({ arrival, runs }) => (runs.length === 0 ? [arrival.state] : runs.map(({ run }) => run.state)));
}

test("files without permission are reported, stay, and are delivered once when the permission is given", {
  timeout: 60_000,
}, async () => {
  const drops = ["unreadable", "fixed", "hidden"];
  const stage = await rig.stage("flip", {
    drops: drops.map((name) => ({ ...localDrop, name, path: `./${name}` })),
  });
  const sets = await Promise.all([...drops, "fine"].map(async (name) => readingsOf(await rig.variable(name), 8)));
  const [unreadable, fixed, hidden, fine] = sets.map(({ csv }) => csv);
  await stage.put("standard_unreadable.csv", unreadable ?? "", join(stage.folder, "unreadable"));
  await stage.put("standard_fine.csv", fine ?? "", join(stage.folder, "unreadable"));
  await stage.put("standard_fixed.csv", fixed ?? "", join(stage.folder, "fixed"));
  await stage.put("standard_hidden.csv", hidden ?? "", join(stage.folder, "hidden"));
  await own(rig.folder, stage.folder);
  const at = (path: string) => join(stage.folder, path);

  await chmod(at("unreadable/standard_unreadable.csv"), 0o000);
  await chmod(at("fixed"), 0o555);
  await chmod(at("hidden"), 0o000);
  expect(await may("cat", at("unreadable/standard_unreadable.csv"))).toBe(false);
  expect(await may("mv", at("fixed/standard_fixed.csv"), at("fixed/x"))).toBe(false);
  expect(await may("ls", at("hidden"))).toBe(false);

  const broken = await gateway(stage, "6s");
  expect(broken.code, broken.stderr).toBe(1);
  expect(await standing(stage, "standard_unreadable.csv")).toEqual(["quarantined"]);
  expect(await standing(stage, "standard_fixed.csv")).toEqual([expect.stringMatching(/accepted|confirmed/)]);
  expect(await standing(stage, "standard_hidden.csv")).toEqual([]);
  expect(broken.stderr).toContain("drop hidden cannot be listed");
  expect(await readdir(at("fixed"))).toEqual(["standard_fixed.csv"]);

  await chmod(at("unreadable/standard_unreadable.csv"), 0o644);
  await chmod(at("fixed"), 0o755);
  await chmod(at("hidden"), 0o755);
  expect(await may("cat", at("unreadable/standard_unreadable.csv"))).toBe(true);
  const mended = await gateway(stage, "60s");
  expect(mended.code, mended.stderr).toBe(1);
  for (const name of ["fixed", "hidden", "fine"])
    expect(await standing(stage, `standard_${name}.csv`)).toEqual([expect.stringMatching(/accepted|confirmed/)]);
  for (const drop of ["fixed", "hidden"]) expect(await readdir(at(drop))).toEqual(["archive"]);
  // What a person has to look at stays until one does.
  expect(await standing(stage, "standard_unreadable.csv")).toEqual(["quarantined"]);
  expect((await readdir(at("unreadable"))).toSorted()).toEqual(["archive", "standard_unreadable.csv"]);
  for (const { variableId, points } of sets.slice(1)) expect(await rig.stored(variableId)).toEqual(points);
  expect(stage.lane.conflicts).toEqual([]);
});

async function own(ground: string, folder: string): Promise<void> {
  await chmod(ground, 0o755);
  if (uid === undefined) return;
  await chown(folder, uid, uid);
  for (const item of await readdir(folder, { recursive: true })) await chown(join(folder, item), uid, uid);
}
