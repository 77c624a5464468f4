/** Mails about alarms beyond the limit of an account in an hour. */
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { silentLog as log } from "#core/log.ts";
import { type RunningHub, startHub } from "#hub/hub.ts";
import { hubOptions } from "#hub/options.ts";
import { LITTLE_HASHING as hashCost } from "../../support/hash-cost.ts";
import { JumpingClock } from "../../support/jumping-clock.ts";
import { callsOf, createChain, type HubCalls, rawOptions, temporaryDirectory, until } from "../fixture.ts";
import { sentMails } from "./outbox.ts";

const HOUR_MS = 3_600_000;

let clock: JumpingClock;
let running: RunningHub;
let hub: HubCalls;
let directory: Awaited<ReturnType<typeof temporaryDirectory>>;

const start = () => {
  const mail = { outbox: join(directory.path, "outbox"), alarmsAnHour: 2 };
  const options = rawOptions(directory.path, { tokenLifetime: "30d", mail });
  return startHub(hubOptions.parse(options), { log, hashCost, clock });
};
beforeEach(async () => {
  clock = new JumpingClock();
  directory = await temporaryDirectory();
  running = await start();
  hub = callsOf(() => running.url);
});
afterEach(async () => {
  await running.close();
  await directory.remove();
});

const mailsOf = (subject: string) => sentMails({ directory: directory.path }, subject);
const untilMails = (subject: string, count: number) =>
  until(async () => {
    const found = await mailsOf(subject);
    return found.length >= count ? found : undefined;
  });
const digests = () =>
  until(async () => ((await mailsOf("more changes")).length === 0 ? undefined : mailsOf("more changes")));

test("are one mail for each recipient, an hour after the first of them, also after a restart", async () => {
  const { variableIds } = await createChain(hub, { variables: Array.from({ length: 5 }, () => ({})) });
  const template = await hub.post("/alarms/template", {
    name: "Too high",
    selection: { variableIds },
    condition: { kind: "Above", set: 10 },
    notifications: { emails: ["one@example.org"] },
  });
  await until(async () => ((await hub.get("/alarms", { templateIds: template })).length === 5 ? true : undefined));
  const date = new Date(clock.now().epochMilliseconds).toISOString();
  await hub.push(variableIds.map((variableId) => ({ variableId, data: [{ date, value: 12 }] })));
  await until(async () =>
    (await hub.get("/alarms/history", { templateIds: template })).length === 5 ? true : undefined,
  );
  await untilMails("Too high", 2);
  await running.close();
  running = await start();
  clock.jump(HOUR_MS - 60_000);
  // Another change: it is judged when everything before has been.
  await hub.push([
    { variableId: variableIds[0], data: [{ date: new Date(Date.parse(date) + 1).toISOString(), value: 1 }] },
  ]);
  await until(async () =>
    (await hub.get("/alarms/history", { templateIds: template })).length === 6 ? true : undefined,
  );
  expect(await mailsOf("more changes")).toEqual([]);
  clock.jump(60_000);
  const [digest, ...others] = await digests();
  expect(others).toEqual([]);
  expect(digest?.headers["subject"]).toMatch(/^4 more changes of alarms in /);
  expect(digest?.text.match(/Too high at/g)).toHaveLength(4);
  expect(digest?.text).toContain("Ended: Too high");
  expect(digest?.text).toMatch(/\d{2}:\d{2}:\d{2} in Europe\/\w+ \(.* UTC\) {2}Warning: Too high at/);
  expect(digest?.text).not.toContain("GET");
  expect(await mailsOf("Too high")).toHaveLength(2);
});
