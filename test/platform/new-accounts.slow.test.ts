/** Accounts that come while the hub runs, as by another hub of the database. */
import { afterEach, expect, test } from "vitest";
import { hashPassword } from "#core/sign-in/passwords.ts";
import type { HubStore } from "#hub/store/store.ts";
import { captureShown } from "../cli/shown.ts";
import { sftpSender } from "../hub/transfer/sender.ts";
import { LITTLE_HASHING } from "../support/hash-cost.ts";
import { type PlatformRig, standardCsv, startRig } from "./rig.ts";

const DATE = "2026-03-01T00:00:00Z";

let rig: PlatformRig;
afterEach(() => rig.close());
const shown = captureShown();

const identity = () => (rig.platform().inside.store as HubStore).identity;
const people = () => (rig.platform().inside.store as HubStore).people;

test("files of an account that came after the start are processed by its triggers", async () => {
  rig = await startRig();
  await identity().putAccount({ id: 3, name: "Third" });
  const by = { as: "admin", account: 3 };
  const variableId = await rig.variable("K-3", by);
  await rig.trigger("new_", "standard", {}, by);
  const id = await rig.store("new_1.csv", standardCsv("K-3", DATE, 7), by);
  await rig.became(id, "stored", by);
  expect(Object.values(await rig.values(variableId, by))).toEqual([7]);
  // The other accounts go on.
  await rig.trigger("old_", "standard");
  await rig.variable("K-1");
  await rig.became(await rig.store("old_1.csv", standardCsv("K-1", DATE, 8)), "stored");
  // An account that hub.yaml does not have.
  expect(await shown.headgate(["pause", "account-3", "-c", rig.config])).toBe(0);
  expect(await shown.headgate(["pause", "account-4", "-c", rig.config])).toBe(2);
});

test("a hub without an account takes files once it has one, also by its file-transfer server", async () => {
  rig = await startRig({ accounts: [], users: [], transfer: { sftp: { listen: "127.0.0.1:0" } } });
  expect(rig.platform().gateway).toBeNull();
  await identity().putAccount({ id: 1, name: "First" });
  const passwordHash = await hashPassword("manager-password", LITTLE_HASHING);
  const manager = { username: "manager", email: null, adopt: false, passwordHash, comparedWith: null };
  await people().seed([{ ...manager, roles: ["Manager"], accounts: [1] }], 0);
  await rig.variable("K-1");
  await rig.trigger("sent_", "standard", { ingestionType: "SendViaFtp" });
  const hub = { transfer: () => rig.platform().transfer };
  const sender = await sftpSender(hub, { username: "manager", password: "manager-password" });
  await sender.put("/sent_1.csv", standardCsv("K-1", DATE, 9));
  sender.end();
  const [file] = await rig.get("/storage", { Filename: "sent_1.csv" });
  await rig.became(file.id, "stored");
});
