/** A file that is refused for its size or for the quota of its account leaves one line in the log. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createLog } from "#core/log.ts";
import { startTestHub, type TestHub } from "../fixture.ts";
import { sftpSender } from "../transfer/sender.ts";

const SECOND = { as: "second", account: 2 };
const lines: string[] = [];
let hub: TestHub;
beforeAll(async () => {
  const log = createLog("warn", { write: (line) => void lines.push(line) });
  const options = {
    transfer: { sftp: { listen: "127.0.0.1:0" } },
    limits: { file: "1KB" },
    accounts: [
      { id: 1, name: "First" },
      { id: 2, name: "Second", limits: { storedBytes: "500B" } },
    ],
  };
  hub = await startTestHub(options, true, { log });
});
afterAll(() => hub.close());
beforeEach(() => void lines.splice(0));

const refusals = () =>
  lines
    .map((line) => JSON.parse(line) as { msg: string; account: number; user: string; name: string; reason: string })
    .filter(({ msg }) => msg === "a file was refused")
    .map(({ account, user, name, reason }) => ({ account, user, name, reason }));

const LARGE = new Uint8Array(100_000);

test("by POST /storage", async () => {
  expect((await hub.upload(LARGE, "large.csv")).status).toBe(413);
  expect((await hub.upload("x".repeat(600), "quota.csv", SECOND)).status).toBe(507);
  expect(refusals()).toEqual([
    { account: 1, user: "manager", name: "large.csv", reason: expect.stringContaining("limits.file") },
    { account: 2, user: "second", name: "quota.csv", reason: expect.stringContaining("500 bytes") },
  ]);
});

test("by a custom push", async () => {
  const id = await hub.post("/fileTrigger", { ingestionType: "SendViaHttp", mapping: "acme" });
  const { token } = await hub.get(`/fileTrigger/${id}`);
  const query = { Filename: "large.csv" };
  expect((await hub.call("POST", `/push/api/generic/${token}`, { query, raw: LARGE })).status).toBe(413);
  const reason = expect.stringContaining("limits.file");
  expect(refusals()).toEqual([{ account: 1, user: "manager", name: "large.csv", reason }]);
});

test("by SFTP", async () => {
  const sender = await sftpSender(hub);
  await expect(sender.put("/large.csv", Buffer.from(LARGE))).rejects.toThrow("limits.file");
  sender.end();
  const reason = expect.stringContaining("limits.file");
  expect(refusals()).toEqual([{ account: 1, user: "pusher", name: "large.csv", reason }]);
});
