/** The intake of a gateway, as a real process, killed as a power cut would around the moment in which it answers. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { HeadgateProcess } from "./processes.ts";
import { type Readings, readingsOf } from "./readings.ts";
import { Rig, type Stage } from "./rig.ts";
import { atMost, until } from "./wait.ts";

const AUTHORIZATION = `Basic ${Buffer.from("device:device-password").toString("base64")}`;
const intake = {
  name: "intake",
  kind: "http",
  listen: "127.0.0.1:0",
  every: "200ms",
  users: [{ username: "device", password: "device-password" }],
};
const BODIES = 6;

/** Of the intake itself, and of what follows on its bodies. */
const POINTS = [
  "intake.promised#3",
  "intake.durable#1",
  "intake.durable#4",
  "intake.answered#1",
  "intake.answered#5",
  "ledger.poll.recorded.before#2",
  "ledger.run.claimed.after#2",
  "run.fetch.stored#2",
  "delivery.after-answer#2",
  "drops.finish.after-rename#2",
];

let rig: Rig;
const inTurn = atMost(2);
beforeAll(async () => {
  rig = await Rig.start();
});
afterAll(() => rig.close());

async function urlOf(gateway: HeadgateProcess): Promise<string> {
  return (await gateway.said("stderr", /"intakes":\{"intake":"([^"]+)"/))[1] ?? "";
}

function bodyOf({ variableId, points }: Readings): string {
  return JSON.stringify([{ variableId, data: points.map(({ date, value }) => ({ date, value })) }]);
}

/**
 * Sends as a device does that knows the service: again until it is told that its body was taken. Answers how
 * often it was told.
 */
async function send(stage: Stage, gateways: HeadgateProcess[], operationId: string, body: string): Promise<void> {
  await until(`200 for ${operationId}`, async () => {
    const gateway = gateways.at(-1);
    if (gateway === undefined || !gateway.running) {
      gateways.push(stage.gateway([]));
      return false;
    }
    try {
      const url = `${await urlOf(gateway)}/api/data/?operationId=${operationId}`;
      const headers = { authorization: AUTHORIZATION };
      const answer = await fetch(url, { method: "POST", body, headers });
      return answer.status === 200 && ((await answer.json()) as { operationId: string }).operationId === operationId;
    } catch {
      return false; // It was killed: the device cannot know whether its body was taken.
    }
  });
}

/** The bodies behind the first are another list then, so that each point is passed twice. */
async function isPickedUp(gateway: HeadgateProcess | undefined): Promise<void> {
  const holds = async () => gateway?.running !== true || gateway.stderr.includes('"files picked up"');
  await until("the first body is picked up, or the gateway killed", holds);
}

describe.concurrent("a gateway killed while its intake receives bodies loses and repeats nothing", () => {
  test.each(POINTS)("%s", { timeout: 120_000 }, (point) =>
    inTurn(async () => {
      const name = `intake-${point.replaceAll(/[^a-z0-9-]/g, "-")}`;
      const stage = await rig.stage(name, { drops: [intake], triggers: [] });
      const variableId = await rig.variable(name);
      const parts = Array.from({ length: BODIES }, (_, nth) => readingsOf(variableId, 10, nth * 100, nth * 10));
      const gateways = [stage.gateway([], { fault: point })];
      for (const [nth, part] of parts.entries()) {
        await send(stage, gateways, `${name}-${nth}`, bodyOf(part));
        if (nth === 0) await isPickedUp(gateways.at(-1));
      }
      const killed = await gateways[0]?.ended();
      expect(killed?.signal, `${point} was passed`).toBe("SIGKILL");
      await gateways.at(-1)?.end("SIGTERM");

      const { code, stderr } = await stage.untilIdle();
      expect(code, stderr).toBe(0);
      expect(stage.lane.conflicts).toEqual([]);
      expect(await rig.stored(variableId)).toEqual(parts.flatMap(({ points }) => points));
      for (const [nth] of parts.entries())
        expect(await stage.inspect((ledger) => ledger.trace(`${name}-${nth}`))).toMatchObject([
          { runs: [{ run: { state: "confirmed" } }] },
        ]);
    }),
  );
});

test("an acknowledged body need not be sent again", async () => {
  const stage = await rig.stage("intake-answered-once", { drops: [intake], triggers: [] });
  const variableId = await rig.variable("intake-answered-once");
  const part = readingsOf(variableId, 10, 0);
  const gateway = stage.gateway([], { fault: "intake.answered" });
  const headers = { authorization: AUTHORIZATION };
  const answer = await fetch(`${await urlOf(gateway)}/api/data`, {
    method: "POST",
    body: bodyOf(part),
    headers,
  });
  expect(answer.status).toBe(200);
  expect(await gateway.ended()).toMatchObject({ signal: "SIGKILL" });
  expect(await stage.untilIdle()).toMatchObject({ code: 0 });
  expect(await rig.stored(variableId)).toEqual(part.points);
});
