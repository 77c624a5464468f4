/** A push on PostgreSQL holds the lane of its account while it is applied: other accounts calculate meanwhile. */
import { expect, test } from "vitest";
import { silentLog as log } from "#core/log.ts";
import { startHub } from "#hub/hub.ts";
import { hubOptions } from "#hub/options.ts";
import { createPool, transact } from "#hub/store/postgres/database.ts";
import type { HubStore } from "#hub/store/store.ts";
import { callsOf, rawOptions, temporaryDirectory, usePostgres } from "../fixture.ts";
import { calculate, openScene, untilCalculated, valuesOf } from "./scene.ts";

const LEAN = {
  clients: [{ id: "gateway", secret: "gateway-secret" }],
  users: [{ username: "manager", password: "manager-password", accounts: [1, 2], roles: ["Manager"] }],
};

test("an account whose lane is held is passed over, and calculated when the lane is free", async () => {
  await usePostgres();
  const directory = await temporaryDirectory();
  const options = hubOptions.parse(rawOptions(directory.path, LEAN));
  if (options.store.kind !== "postgres") throw new Error("not on PostgreSQL");
  const pool = createPool(options.store, { max: 1 });
  const running = await startHub(options, { log });
  try {
    const hub = callsOf(() => running.url);
    const scene = await openScene(hub);
    const [input = 0] = scene.inputs;
    const id = await calculate(hub, scene, "= a * 2", { a: input });
    await untilCalculated(hub);
    const { claims } = running.inside.store as HubStore;
    const terms = { node: "other", nowMs: 1, untilMs: 2, defaultVersion: "v", isAlone: true };
    let awaited: Promise<unknown> | null = null;
    await transact(pool, async (sql) => {
      await sql.get("SELECT 1 FROM lane WHERE account_id = 1 FOR UPDATE");
      expect(await claims.claim(1, { ...terms, waits: false }, () => [])).toBe("held");
      expect(await claims.claim(2, { ...terms, waits: false }, () => [])).toBeNull();
      awaited = claims.claim(1, { ...terms, waits: true }, () => []);
    });
    expect(await awaited).toBeNull();
    await hub.push([{ variableId: input, data: [{ date: "2026-03-01T10:00:00Z", value: 21 }] }]);
    await untilCalculated(hub);
    expect(await valuesOf(hub, id)).toEqual({ "2026-03-01T10:00:00Z": 42 });
  } finally {
    await running.close();
    await pool.end();
    await directory.remove();
  }
});
