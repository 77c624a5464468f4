/** What tells from which file a push came: to the account, to the receiver of its outcome, and to an operator. */
import { execFile } from "node:child_process";
import { resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startReceiver } from "../hub/fixture.ts";
import { zip } from "./contents.ts";
import { type PlatformRig, standardCsv, startRig } from "./rig.ts";

const MAIN = resolve(import.meta.dirname, "../../src/main.ts");
const DATE = "2026-03-01T00:00:00Z";

let rig: PlatformRig;
beforeAll(async () => {
  rig = await startRig();
});
afterAll(() => rig.close());

async function headgate(...args: string[]): Promise<string> {
  return (await promisify(execFile)(process.execPath, [MAIN, ...args, "-c", rig.config])).stdout;
}

test("the outcome of a custom push is sent to its webhookUrl, with the file", async () => {
  const receiver = await startReceiver();
  try {
    await rig.variable("W-1");
    const more = { ingestionType: "SendViaHttp", name: "of meters" };
    const triggerId = await rig.trigger("pushed", "standard", more);
    const { token } = await rig.get(`/fileTrigger/${triggerId}`);
    const query = { filename: "pushed.csv", webhookUrl: receiver.url };
    const raw = standardCsv("W-1", DATE, 3);
    const { id } = (await rig.ok("POST", `/push/api/generic/${token}`, { raw, query })) as { id: number };
    await expect.poll(() => receiver.received.length).toBe(1);
    expect(JSON.parse(receiver.received[0]?.text ?? "")).toMatchObject({
      stored: 1,
      file: { id, fileName: "pushed.csv", via: "generic", trigger: { id: triggerId, name: "of meters" } },
    });
    expect(await rig.get(`/storage/${id}`)).not.toHaveProperty("webhookUrl");
  } finally {
    await receiver.close();
  }
});

test("a client that chooses the operationId of a file's push names no file", async () => {
  const variableId = await rig.variable("F-1");
  await rig.trigger("own", "standard");
  const id = await rig.store("own.csv", standardCsv("F-1", DATE, 4));
  await rig.became(id, "stored");
  const operationId = `file-${id}-forged`;
  const body = [{ variableId, data: [{ date: DATE, value: 5 }] }];
  await rig.post("/push/api/data", body, { query: { operationId } });
  expect(await rig.get(`/operations/${operationId}`)).not.toHaveProperty("file");
});

test("an operation still tells the file when it was removed", async () => {
  await rig.variable("R-1");
  const triggerId = await rig.trigger("removed", "standard", { name: "of R" });
  const id = await rig.store("removed.csv", standardCsv("R-1", DATE, 4));
  const { run } = await rig.became(id, "stored");
  await rig.ok("DELETE", "/storage", { query: { ids: id } });
  const [batch] = (await rig.platform().gateway?.ledger.batches(String(run))) ?? [];
  const { file } = await rig.get(`/operations/${batch?.operationId}`);
  expect(file).toEqual({ id, fileName: null, via: null, createdBy: null, trigger: { id: triggerId, name: "of R" } });
});

test("each operation of a ZIP names the trigger that claimed its file", async () => {
  const ids = [await rig.variable("Z-1"), await rig.variable("Z-2")];
  const triggers = [await rig.trigger("z1", "standard"), await rig.trigger("z2", "standard")];
  const files = { "z1.csv": standardCsv("Z-1", DATE, 1), "z2.csv": standardCsv("Z-2", DATE, 2) };
  const id = await rig.store("both.zip", await zip(files));
  await rig.became(id, "stored");
  expect((await rig.get(`/storage/${id}`)).triggerId).toBeNull();
  const { ledger } = rig.platform().gateway ?? {};
  for (const [nth, variableId] of ids.entries()) {
    expect(Object.values(await rig.values(variableId))).toEqual([nth + 1]);
    const [traced] = (await ledger?.trace(`${id}/both.zip!/z${nth + 1}.csv`)) ?? [];
    const operationId = traced?.runs[0]?.batches[0]?.operationId;
    const { file } = await rig.get(`/operations/${operationId}`);
    expect(file).toMatchObject({ id, fileName: "both.zip", trigger: { id: triggers[nth], name: null } });
  }
});

test("the commands of a gateway work with the hub's configuration, also while the hub runs", async () => {
  await rig.variable("C-1");
  await rig.trigger("cli", "standard");
  const id = await rig.store("cli.csv", standardCsv("C-1", DATE, 6));
  await rig.became(id, "stored");
  const broken = await rig.store("cli-broken.csv", standardCsv("C-1", DATE, "many"));
  await rig.became(broken, "quarantined");
  const target = ["--target", "sourceSerialNumber=C-1 mappingConfig=kWh", "--date", DATE];
  expect(JSON.parse(await headgate("trace", ...target, "--json"))).toMatchObject([{ row: 2, path: `${id}/cli.csv` }]);
  const history = await headgate("trace", `${id}/cli.csv`);
  expect(history).toContain(`manager, by upload (stored file ${id})`);
  expect(await headgate("quarantine")).toContain("cli-broken.csv");
  expect(await headgate("ledger", "check")).toContain("ledger, spool and drops agree");
  expect(await headgate("pause", "account-1")).not.toContain("No gateway runs now");
  expect(await headgate("resume", "account-1")).toContain("account-1");
});
