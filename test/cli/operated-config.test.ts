/** Commands beside a gateway: they need the secrets that they use, and the configuration that is in force. */
import { appendFileSync, copyFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { drop, GatewayRig, oneReading, trigger, until } from "../runs/gateway-rig.ts";
import { headgate } from "../runs/in-process.ts";

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

let rig: GatewayRig;
beforeAll(async () => {
  rig = await GatewayRig.start();
});
afterAll(() => rig.close());

const READING = [["runs"], ["runs", "--waiting"], ["quarantine"], ["trace", "a.csv"], ["console", "link"]] as const;

test("work without the secrets of others, and while the file on the disk is broken", async () => {
  const variable = await rig.variable("a");
  const secrets = { HEADGATE_TEST_PASSWORD: "password", HEADGATE_TEST_URL: "http://127.0.0.1:9/chat" };
  for (const [name, value] of Object.entries(secrets)) vi.stubEnv(name, value);
  writeFileSync(join(rig.folder, "secret"), "a secret of many letters");
  const service = rig.service("hub");
  const gateway = await rig.open({
    services: [{ ...service, credentials: { ...service.credentials, password: "${env:HEADGATE_TEST_PASSWORD}" } }],
    notifications: {
      receivers: [
        { name: "chat", kind: "webhook", url: "${env:HEADGATE_TEST_URL}", secret: "${file:secret}", about: ["late"] },
      ],
    },
    drops: [drop("in")],
    triggers: [trigger("standard")],
  });
  rig.put("in/a.csv", oneReading(variable, 1));
  await until("it is delivered", async () => (await gateway.ledger.countRuns(["confirmed"])) === 1);

  vi.unstubAllEnvs();
  for (const words of READING)
    expect(await headgate(...words, "-c", rig.config), words.join(" ")).toMatchObject({ code: 0 });
  expect((await headgate("trace", "a.csv", "-c", rig.config)).stdout).toContain("HEADGATE_TEST_PASSWORD");
  expect(await headgate("health", "gateway", "-c", rig.config)).toMatchObject({ code: 0 });
  // What uses them needs them.
  expect(await headgate("check", "-c", rig.config)).toMatchObject({ code: 2 });

  copyFileSync(rig.config, join(rig.folder, "kept.yaml"));
  appendFileSync(rig.config, "\nnonsense: true\n");
  for (const words of READING) {
    const { code, stderr } = await headgate(...words, "-c", rig.config);
    expect(code, words.join(" ")).toBe(0);
    expect(stderr).toContain("is not valid, and the gateway that runs has its former content");
  }
  appendFileSync(rig.config, "  - [not: yaml\n");
  expect((await headgate("runs", "-c", rig.config)).stdout).toContain("a.csv");
  await gateway.stop();
  expect(await headgate("runs", "-c", rig.config)).toMatchObject({ code: 2 });
});
