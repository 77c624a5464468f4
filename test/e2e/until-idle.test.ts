/** `--until-idle` comes to an end also where something can never be done on this machine. */
import { constants } from "node:fs";
import { copyFile, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { readingsOf } from "./readings.ts";
import { localDrop, Rig } from "./rig.ts";
import { PATIENTLY, until } from "./wait.ts";

vi.setConfig(PATIENTLY);

let rig: Rig;
beforeAll(async () => {
  rig = await Rig.start();
});
afterAll(() => rig.close());

test("a mapper process that cannot start ends the command with 1, the file and the reason", async () => {
  const stage = await rig.stage("no-process", {
    drops: [{ ...localDrop, settle: { observations: 6, interval: "500ms" } }],
  });
  await stage.put("standard_one.csv", readingsOf(await rig.variable("no-process"), 3).csv);
  // Of its own, so that it can be taken away: who starts a process of it finds nothing then.
  const node = join(stage.folder, "node");
  await copyFile(process.execPath, node, constants.COPYFILE_FICLONE);
  const gateway = stage.gateway(["--until-idle", "--json", "--timeout", "1h"], {
    through: ["sh", "-c", `shift; exec ${node} "$@"`, "sh"],
  });
  await gateway.said("stderr", /gateway started/);
  await rm(node);
  // One that was started ahead waits for the first file.
  const ahead = await until("a process started ahead", async () => {
    const ids = await readFile(`/proc/${gateway.pid}/task/${gateway.pid}/children`, "utf8");
    return ids.trim() !== "" && ids.trim().split(" ").map(Number);
  });
  for (const id of ahead) process.kill(id, "SIGKILL");
  const { code, stderr, stdout } = await gateway.ended();
  expect(stderr).toMatch(/standard_one\.csv at field is only fetched: .*no process for the mapper/);
  expect(JSON.parse(stdout).files).toEqual({ pending: 1 });
  expect(code).toBe(1);
  expect(await stage.files()).toEqual(["standard_one.csv"]);
});
