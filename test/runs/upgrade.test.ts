/** A ledger of the previous schema, with runs in flight, comes up and finishes them. */
import { readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, it } from "vitest";
import { until } from "../e2e/wait.ts";
import { GatewayRig, oneReading } from "./gateway-rig.ts";

const FIRST = join(import.meta.dirname, "../../src/ledger/sqlite/migrations/001-ledger.sql");

it("a ledger of the first schema with runs in flight is brought up, and its runs are delivered once", async () => {
  const rig = await GatewayRig.start();
  try {
    const variables = [await rig.variable("a", true), await rig.variable("b", true)];
    rig.put("in/a.csv", oneReading(variables[0] ?? 0, 1));
    rig.put("in/bad.csv", "variable_id,date,value\n1,2026-03-01,many\n");
    const before = await rig.open({ services: [{ ...rig.service("hub"), push: "http://127.0.0.1:9/push" }] });
    await until("one run is sent in vain and one rests", async () => {
      const states = (await before.ledger.recentRuns(9)).map(({ state }) => state);
      return states.includes("delivering") && states.includes("quarantined");
    });
    const ids = (await before.ledger.recentRuns(9)).map(({ id }) => id).sort();
    await before.stop();
    writeAsFirst(join(rig.folder, "state/ledger.sqlite"));
    rig.put("in/b.csv", oneReading(variables[1] ?? 0, 2));

    const after = await rig.open({});
    await until("it is idle", () => after.isIdle());
    const runs = await after.ledger.recentRuns(9);
    expect(runs.map(({ state }) => state).sort()).toEqual(["confirmed", "confirmed", "quarantined"]);
    expect(runs.map(({ id }) => id)).toEqual(expect.arrayContaining(ids));
    expect(runs.every(({ replay }) => replay === null)).toBe(true);
    expect(await rig.stored(variables[0] ?? 0)).toEqual({ "2026-03-01": 1 });
    expect(await rig.stored(variables[1] ?? 0)).toEqual({ "2026-03-01": 2 });
  } finally {
    await rig.close();
  }
});

it("a batch that an earlier version had sent without an answer is never split, since it may be stored", async () => {
  const rig = await GatewayRig.start();
  const ids: string[] = [];
  // It takes what comes, and never says so; later it says that it is too much.
  let says: number | null = null;
  const service = createServer((request, response) => {
    ids.push(String(URL.parse(request.url ?? "", "http://service")?.searchParams.get("operationId")));
    request.resume().on("end", () => {
      if (says === null) request.socket.destroy();
      else response.writeHead(says).end();
    });
  });
  try {
    await new Promise<void>((resolve) => service.listen(0, "127.0.0.1", resolve));
    const push = `http://127.0.0.1:${(service.address() as AddressInfo).port}`;
    const services = [{ ...rig.service("hub"), push }];
    const id = await rig.variable("a", true);
    rig.put("in/a.csv", `variable_id,date,value\n${id},2026-03-01T00:00:00Z,1\n${id},2026-03-02T00:00:00Z,2\n`);
    const before = await rig.open({ services });
    const [run] = await until("it is sent, and not answered", async () => {
      const runs = await before.ledger.runsIn(["delivering"]);
      const [batch] = runs[0] === undefined ? [] : await before.ledger.batches(runs[0].id);
      return batch?.answer?.includes("without a clear answer") === true && runs;
    });
    await before.stop();
    const path = join(rig.folder, "state/ledger.sqlite");
    writeAsFirst(path);
    const old = new DatabaseSync(path);
    old.exec("UPDATE batches SET answer = substr(answer, 1, instr(answer, '; an attempt') - 1)");
    old.close();

    says = 413;
    const after = await rig.open({ services });
    await until("it rests", async () => (await after.ledger.run(run?.id ?? ""))?.state === "quarantined");
    expect(await after.ledger.batches(run?.id ?? "")).toMatchObject([{ state: "rejected", points: 2 }]);
    expect(new Set(ids).size).toBe(1);
  } finally {
    await rig.close();
    service.closeAllConnections();
    service.close();
  }
});

/** As a gateway of that time would have left it: its own tables, with the rows that are there. */
function writeAsFirst(path: string): void {
  const now = new DatabaseSync(path);
  now.exec(`VACUUM INTO '${path}.now'`);
  const { application_id: application } = now.prepare("PRAGMA application_id").get() as {
    application_id: number;
  };
  now.close();
  for (const end of ["", "-wal", "-shm"]) rmSync(`${path}${end}`, { force: true });
  const first = new DatabaseSync(path);
  first.exec("PRAGMA foreign_keys = OFF; PRAGMA journal_mode = WAL;");
  first.exec(readFileSync(FIRST, "utf8"));
  first.exec(`PRAGMA application_id = ${application}; PRAGMA user_version = 1; ATTACH '${path}.now' AS now;`);
  const tables = first
    .prepare("SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    .all() as { name: string }[];
  for (const { name } of tables) {
    const columns = first.prepare("SELECT name FROM pragma_table_info(?, 'main')").all(name) as {
      name: string;
    }[];
    const list = columns.map((column) => `"${column.name}"`).join(", ");
    first.exec(`INSERT INTO main.${name} (${list}) SELECT ${list} FROM now.${name}`);
  }
  first.close();
  rmSync(`${path}.now`);
}
