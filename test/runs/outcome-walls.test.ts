/** Two services of two accounts in one gateway: what one of them says of the other's operations is not believed. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Registry } from "prom-client";
import { expect, it } from "vitest";
import { stringify } from "yaml";
import { loadGatewayConfig } from "../../src/config/gateway-config.ts";
import { closeAll } from "../../src/gateway/closers.ts";
import { openOffice } from "../../src/gateway/office.ts";
import { openLedger } from "../../src/ledger/open.ts";
import { systemClock } from "../../src/support/clock.ts";
import { createLog, silentLog } from "../../src/support/log.ts";
import { SIGNATURE_HEADER, signWebhook } from "../../src/wire/index.ts";
import { deliver, mapped } from "../ledger/fixtures.ts";
import { drop, trigger } from "./gateway-rig.ts";

const SECRET = "a secret that both know";
const credentials = { clientId: "c", clientSecret: "secret", username: "u", password: "password" };
const service = (name: string, account: string) => {
  const base = `http://127.0.0.1:9/${name}`;
  return { name, account, base, push: `${base}/push`, token: `${base}/token`, credentials };
};

it("an outcome that another account tells is refused with a warning, and changes nothing", async () => {
  const folder = mkdtempSync(join(tmpdir(), "headgate-"));
  const path = join(folder, "gateway.yaml");
  const settings = {
    services: [service("main", "1"), service("other", "2")],
    drops: [drop("in")],
    triggers: [trigger("standard", { service: "main" })],
    operations: { listen: "127.0.0.1:0", webhook: { secret: SECRET } },
  };
  writeFileSync(path, stringify(settings));
  const means = { clock: systemClock, log: silentLog };
  const config = loadGatewayConfig(path);
  const ledger = await openLedger(config.ledger, means);
  const said: string[] = [];
  const log = createLog("warn", { write: (line) => void said.push(line) });
  const closers: (() => Promise<unknown>)[] = [() => ledger.close()];
  try {
    const parts = { ledger, log, clock: systemClock, metrics: new Registry() };
    const { url } = await openOffice(config, parts, closers);
    const run = await deliver(ledger, await mapped(ledger, "a.csv"));
    const operationId = `${run.id}-1`;
    const tell = async (account: number) => {
      const at = new Date().toISOString();
      const counts = { received: 10, stored: 10, replaced: 0, discarded: [] };
      const body = JSON.stringify({ operationId, account, ...counts, started: at, finished: at });
      const headers = { [SIGNATURE_HEADER]: signWebhook(body, SECRET, Math.floor(Date.now() / 1000)) };
      return await fetch(`${url}/webhooks/outcome`, { method: "POST", body, headers });
    };
    const before = await ledger.trace(run.id);
    expect((await tell(2)).status).toBe(401);
    expect(await ledger.trace(run.id)).toEqual(before);
    expect(said.join("")).toContain(`the operation ${operationId} is of account 1 (service main)`);
    expect(await (await tell(1)).json()).toEqual({ status: "recorded" });
    expect((await ledger.batches(run.id))[0]?.outcome).toMatchObject({ by: "webhook", stored: 10 });
  } finally {
    await closeAll(closers);
    rmSync(folder, { recursive: true });
  }
});
