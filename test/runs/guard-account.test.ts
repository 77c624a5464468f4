/**
 * The account in the token: of a user who may enter two, and whose last one changes (specification,
 * *Authentication*).
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Gateway } from "#gateway/gateway.ts";
import type { Run } from "#gateway/model.ts";
import { askOperations } from "../support/operations.ts";
import { GatewayRig, oneReading, until } from "./gateway-rig.ts";
import { headgate } from "./in-process.ts";

const USER = { clientId: "c", clientSecret: "client-secret", username: "two", password: "password" };
let rig: GatewayRig;
beforeAll(async () => {
  rig = await GatewayRig.start({
    tokenLifetime: "1s",
    accounts: [
      { id: 1, name: "First" },
      { id: 2, name: "Second" },
    ],
    users: [
      { username: "u", password: "password", accounts: [1], roles: ["Manager", "Datapusher"] },
      { username: "two", password: "password", accounts: [1, 2], roles: ["Manager", "Datapusher"] },
    ],
  });
});
afterAll(() => rig.close());

/** As somebody does who looks into an account in the web interface. */
async function touch(account: number): Promise<void> {
  const form = {
    grant_type: "password",
    client_id: USER.clientId,
    client_secret: USER.clientSecret,
    username: USER.username,
    password: USER.password,
    scope: "datahub-api",
    account: String(account),
  };
  const answer = await fetch(`${rig.hub.url}/connect/token`, {
    method: "POST",
    body: new URLSearchParams(form),
  });
  expect(answer.status).toBe(200);
}

/**
 * The first run that meets the other account tells of it: one that is looked at, or one that was and is about
 * to be sent. All others wait behind it.
 */
async function waitingFor(gateway: Gateway, words: string): Promise<Run | undefined> {
  const runs = await gateway.ledger.runsIn(["mapped", "delivering"]);
  return runs.find(({ reason }) => reason?.code === "HG-PUSH-005" && reason.message.includes(words));
}

it("pushes nothing when the user has touched another account and none is configured", async () => {
  const id = await rig.variable("A");
  const gateway = await rig.open({ services: [{ ...rig.service("hub"), credentials: USER }] });
  rig.put("in/first.csv", oneReading(id, 1));
  await until("it is stored", async () => Object.keys(await rig.stored(id)).length === 1);
  await touch(2);
  // The token lasts a moment longer, and is for the first account.
  let files = 0;
  const waiting = () => waitingFor(gateway, "account 2 now, and to account 1 before");
  await until("one waits", async () => {
    files += 1;
    rig.put(`in/${files}.csv`, oneReading(id, files, `2026-04-01T00:${String(files % 60).padStart(2, "0")}:00Z`));
    return (await waiting()) !== undefined;
  });
  const run = await waiting();
  expect(await gateway.ledger.batches(run?.id ?? "")).toMatchObject([{ acceptedAt: null }]);
});

it("pushes nothing by a token of another account than is configured, and check says so", async () => {
  await touch(2);
  // An endpoint that does not know the field, as older ones do not.
  const forgetful = createServer(async (request, response) => {
    const form = new URLSearchParams(Buffer.concat(await request.toArray()).toString());
    form.delete("account");
    const answer = await fetch(`${rig.hub.url}/connect/token`, { method: "POST", body: form });
    response.writeHead(answer.status, { "content-type": "application/json" }).end(await answer.text());
  });
  await new Promise<void>((resolve) => forgetful.listen(0, "127.0.0.1", resolve));
  const token = `http://127.0.0.1:${(forgetful.address() as AddressInfo).port}/`;
  const id = await rig.variable("B");
  const service = { ...rig.service("hub"), credentials: USER, account: "1", token };
  const gateway = await rig.open({ services: [service] });
  rig.put("in/wrong.csv", oneReading(id, 1));
  const words = "belongs to account 2, but account 1 is configured";
  await until("one waits", async () => (await waitingFor(gateway, words)) !== undefined);
  expect(await rig.stored(id)).toEqual({});
  await until("health tells of it", async () =>
    (await (await askOperations(gateway, "/health/ready")).text()).includes(words),
  );
  const check = await headgate("check", "-c", `${rig.folder}/gateway.yaml`);
  expect(check).toMatchObject({ code: 1, stdout: expect.stringContaining("belongs to account 2") });
  await gateway.stop();
  forgetful.closeAllConnections();
  await new Promise((resolve) => forgetful.close(resolve));
});
