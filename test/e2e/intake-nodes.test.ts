/**
 * Two real gateways with an HTTP intake each, on one ledger in PostgreSQL: what one of them has answered is
 * delivered once, also when that one is killed around the moment in which it answers.
 */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { openTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { Node } from "./node.ts";
import { type Readings, readingsOf } from "./readings.ts";
import { quickPush, Rig } from "./rig.ts";
import { PATIENTLY, until } from "./wait.ts";

vi.setConfig(PATIENTLY);

const AUTHORIZATION = `Basic ${Buffer.from("device:device-password").toString("base64")}`;
const intake = {
  name: "intake",
  kind: "http",
  listen: "127.0.0.1:0",
  every: "200ms",
  users: [{ username: "device", password: "device-password" }],
};
/** More than one piece. */
const LARGE = 12_000;
/** Before the body is committed, between that and the answer, and after the answer. */
const POINTS = ["intake.sharing", "intake.durable", "intake.answered"];

let rig: Rig;
let database: TestDatabase;
beforeAll(async () => {
  [rig, database] = await Promise.all([Rig.start(), openTestDatabase()]);
});
afterAll(async () => {
  await rig.close();
  await database.drop();
});

test("a body that a killed node acknowledged, or may have received, is delivered once by another", async () => {
  const stage = await rig.stage("intake-nodes", {
    ledger: { kind: "postgres", url: database.url, schema: "intakes", lease: "900ms" },
    drops: [intake],
    triggers: [],
    // Webhooks find the node that was started last, which is dead: the other reads back.
    push: {
      ...quickPush,
      batch: { points: 5_000 },
      confirm: { pollEvery: "100ms", webhookWait: "200ms", within: "60s" },
    },
  });
  const [north, south] = [new Node(stage, "north"), new Node(stage, "south")];
  const variableId = await rig.variable("intake-nodes");
  const parts = [0, 1, 2].map((nth) => readingsOf(variableId, nth === 2 ? LARGE : 10, nth * 20_000, nth * 10));
  for (const [nth, point] of POINTS.entries()) {
    // The one that is killed polls the drop.
    await north.start({ fault: point });
    const url = await urlOf(north);
    if (nth === 0) await south.start();
    const operationId = `nodes-${nth}`;
    const part = parts[nth] ?? parts[0];
    if (part === undefined) throw new Error("no readings");
    const first = await post(url, operationId, part);
    expect(await north.process.ended(), point).toMatchObject({ signal: "SIGKILL" });
    expect(first, point).toBe(point === "intake.answered" ? 200 : null);
    // A device that has no answer sends again, wherever its load balancer sends it.
    if (first === null) expect(await post(await urlOf(south), operationId, part)).toBe(200);
  }
  for (const [nth] of POINTS.entries())
    await until(`nodes-${nth} to be confirmed`, () =>
      stage.inspect(async (ledger) => {
        const files = await ledger.trace(`nodes-${nth}`);
        const states = files.flatMap(({ runs }) => runs.map(({ run }) => [run.state, run.node, run.finishedAt]));
        return states.length === 1 && states[0]?.[0] === "confirmed" && states[0]?.[2] !== null ? states : null;
      }),
    );
  expect(stage.lane.conflicts).toEqual([]);
  expect(await rig.stored(variableId)).toEqual(parts.flatMap(({ points }) => points));
  // Delivered bodies are deleted, with all their pieces.
  expect(await database.query("SELECT 1 FROM intakes.stored_files WHERE shelf = 'intake intake'")).toEqual([]);
  expect(
    await database.query(
      "SELECT 1 FROM intakes.stored_pieces p WHERE NOT EXISTS (SELECT 1 FROM " +
        "intakes.stored_files f WHERE f.id = p.file_id)",
    ),
  ).toEqual([]);
  expect((await south.end("SIGTERM")).code).toBe(0);
});

async function urlOf(node: Node): Promise<string> {
  return (await node.process.said("stderr", /"intakes":\{"intake":"([^"]+)"/))[1] ?? "";
}

/** Null when the connection broke: nobody knows. */
async function post(url: string, operationId: string, { variableId, points }: Readings): Promise<number | null> {
  const body = JSON.stringify([{ variableId, data: points.map(({ date, value }) => ({ date, value })) }]);
  try {
    const { status } = await until(`${operationId} to be accepted or refused`, async () => {
      const answer = await fetch(`${url}/api/data?operationId=${operationId}`, {
        method: "POST",
        body,
        headers: { authorization: AUTHORIZATION },
      });
      await answer.arrayBuffer();
      // A node that could not renew its lease in time takes nothing for a moment: the device sends again.
      return answer.status === 503 ? null : answer;
    });
    return status;
  } catch {
    return null; // It was killed.
  }
}
