/** Two services in one gateway: what one of them says of the other's operations is not believed. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { stringify } from "yaml";
import { systemClock } from "#core/clock.ts";
import { createLog, silentLog } from "#core/log.ts";
import { closeAll } from "#gateway/closers.ts";
import { gatewayConfig, loadGatewayConfig } from "#gateway/config.ts";
import { openLedger } from "#gateway/ledger/open.ts";
import { openObservers } from "#gateway/observers.ts";
import { openOperationsApi } from "#gateway/operations-api.ts";
import { SIGNATURE_HEADER, signWebhook } from "#wire/index.ts";
import { deliver, mapped } from "../ledger/fixtures.ts";
import { drop, trigger } from "./gateway-rig.ts";

const SHARED = "a secret that all may know";
const OWN = "a secret of one of them alone";
const credentials = { clientId: "c", clientSecret: "client-secret", username: "u", password: "password" };
const service = (name: string, more: object) => {
  const base = `http://127.0.0.1:9/${name}`;
  return { name, base, push: `${base}/push`, token: `${base}/token`, credentials, ...more };
};

/** A gateway's door for outcomes, with an operation of the service main. */
async function openEndpointFile(services: readonly object[]) {
  const folder = mkdtempSync(join(tmpdir(), "headgate-"));
  const path = join(folder, "gateway.yaml");
  const settings = {
    services,
    drops: [drop("in")],
    triggers: [trigger("standard", { service: "main" })],
    operations: { listen: "127.0.0.1:0", webhook: { secret: SHARED } },
  };
  writeFileSync(path, stringify(settings));
  const means = { clock: systemClock, log: silentLog };
  const config = loadGatewayConfig(path);
  const ledger = await openLedger(config.ledger, means);
  const said: string[] = [];
  const log = createLog("warn", { write: (line) => void said.push(line) });
  const closers: (() => Promise<unknown>)[] = [() => ledger.close()];
  closing.push(async () => {
    await closeAll(closers);
    rmSync(folder, { recursive: true });
  });
  const observers = await openObservers(config, { log, clock: systemClock }, closers);
  const parts = { ledger, log, clock: systemClock, observers };
  const { url } = await openOperationsApi(config, parts, closers);
  const run = await deliver(ledger, await mapped(ledger, "a.csv"));
  const operationId = `${run.id}-1`;
  const tell = async (account: number, secret: string) => {
    const at = new Date().toISOString();
    const counts = { received: 10, stored: 10, replaced: 0, discarded: [] };
    const body = JSON.stringify({ operationId, account, ...counts, started: at, finished: at });
    const headers = { [SIGNATURE_HEADER]: signWebhook(body, secret, Math.floor(Date.now() / 1000)) };
    return await fetch(`${url}/webhooks/outcome`, { method: "POST", body, headers });
  };
  const life = async () => ({
    events: await ledger.trace(run.id),
    outcome: (await ledger.batches(run.id))[0]?.outcome ?? null,
  });
  return { operationId, tell, life, said };
}

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

it("an outcome that another account tells is refused with a warning, and changes nothing", async () => {
  const { operationId, tell, life, said } = await openEndpointFile([
    service("main", { account: "1" }),
    service("other", { account: "2" }),
  ]);
  const before = await life();
  expect((await tell(2, SHARED)).status).toBe(401);
  expect(await life()).toEqual(before);
  expect(said.join("")).toContain(`the operation ${operationId} is of account 1 (service main)`);
  expect(await (await tell(1, SHARED)).json()).toEqual({ status: "recorded" });
  expect((await life()).outcome).toMatchObject({ by: "webhook", stored: 10 });
});

it("the secret of one service opens no outcome of another, whatever account is named, and the reverse", async () => {
  const own = { webhook: { secret: OWN } };
  const whose = "is of service main, and the outcome is signed with the secret of another";
  for (const [services, right, wrong] of [
    [[service("main", own), service("other", {})], OWN, SHARED],
    [[service("main", {}), service("other", own)], SHARED, OWN],
  ] as const) {
    const { operationId, tell, life, said } = await openEndpointFile(services);
    const before = await life();
    expect((await tell(1, wrong)).status).toBe(401);
    expect(said.join("")).toContain(`the operation ${operationId} ${whose}`);
    expect((await tell(1, "a secret of nobody here")).status).toBe(401);
    expect(await life()).toEqual(before);
    expect(await (await tell(1, right)).json()).toEqual({ status: "recorded" });
  }
});

it("where webhooks are received, every service has a secret, its own or the one for all", () => {
  const faults = (services: readonly object[], secret?: string) =>
    gatewayConfig
      .safeParse({
        services,
        drops: [drop("in")],
        triggers: [trigger("standard", { service: "main" })],
        operations: { webhook: { publicUrl: "https://gateway.example.com", secret } },
      })
      .error?.issues.map(({ path, message }) => `${path.join(".")}: ${message}`) ?? [];
  const own = { webhook: { secret: OWN } };
  expect(faults([service("main", own), service("other", own)])).toEqual([]);
  expect(faults([service("main", own), service("other", {})], SHARED)).toEqual([]);
  expect(faults([service("main", own), service("other", {})])).toEqual([
    expect.stringMatching(/^operations\.webhook\.secret: .*webhook\.secret of other:/),
  ]);
});
