import { copyFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { headgate } from "../e2e/processes.ts";
import { startReceiver } from "../hub/fixture.ts";
import { GatewayRig } from "../runs/gateway-rig.ts";

vi.setConfig({ testTimeout: 60_000 });

test("two gateways of one machine have names of their own in what they send", async () => {
  const receiver = await startReceiver();
  const rig = await GatewayRig.start();
  try {
    rig.configure({ notifications: { receivers: [{ kind: "webhook", name: "ops", url: receiver.url }] } });
    const second = join(rig.folder, "second.yaml");
    copyFileSync(rig.config, second);
    for (const config of [rig.config, second])
      expect((await headgate(["notify", "test", "-c", config])).code, config).toBe(0);
    const names = receiver.received.map(({ text }) => (JSON.parse(text) as { gateway: string }).gateway);
    expect(names).toEqual([`${hostname()} (${rig.config})`, `${hostname()} (${second})`]);
  } finally {
    await rig.close();
    await receiver.close();
  }
});
