/** Two gateways in this process that share a ledger in PostgreSQL, each with an HTTP intake of its own address. */
import { mkdtemp, readdir, readlink, rm, writeFile } from "node:fs/promises";
import { request as httpRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { stringify } from "yaml";
import type { Finding } from "#app/cli/check.ts";
import { Door } from "../e2e/breakable-link.ts";
import { until } from "../e2e/wait.ts";
import { headgate } from "../runs/in-process.ts";
import { askOperations } from "../support/operations.ts";
import { openTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { basic, GUID, IntakeRig, intakeSettings, pushBody, type Settings, upload } from "./intake-rig.ts";

let database: TestDatabase;
let rigs: IntakeRig[] = [];
beforeAll(async () => {
  database = await openTestDatabase();
});
afterEach(async () => {
  for (const rig of rigs) await rig.close();
  rigs = [];
  await database.query("DROP SCHEMA IF EXISTS shared CASCADE");
});
afterAll(() => database.drop());

const ledgerOf = (node: string) => ({
  kind: "postgres",
  url: database.url,
  schema: "shared",
  lease: "1m",
  node,
});

async function start(node: string, intake: Settings = {}, more: Settings = {}): Promise<IntakeRig> {
  const rig = await IntakeRig.start(undefined, { ledger: ledgerOf(node), ...more }, intake);
  rigs.push(rig);
  return rig;
}

/** Files in these folders' intakes that this process has open. */
async function openBelow(...folders: readonly string[]): Promise<readonly string[]> {
  const handles = await readdir("/proc/self/fd");
  const paths = await Promise.all(handles.map((one) => readlink(`/proc/self/fd/${one}`).catch(() => "")));
  return paths.filter((path) => folders.some((folder) => path.startsWith(join(folder, "spool", "intake"))));
}

/** Of rows; mappers lie there, too, once a body is claimed. */
const count = async (table: string) =>
  Number((await database.query(`SELECT count(*) AS count FROM shared.${table}`))[0]?.["count"]);

it("a repetition at another node gets the response of the first, and tokens and backlog are shared", async () => {
  const limits = { limits: { backlog: "4KB" } };
  const [north, south] = [await start("north", limits), await start("south", limits)];
  const [path, body] = ["/api/data?operationId=twice", pushBody(1, 1)];
  const first = await north.post(path, body);
  expect(first.status).toBe(200);
  expect(await south.post(path, body)).toMatchObject({ status: 200, body: first.body });
  const both = await Promise.all(
    Array.from({ length: 8 }, (_, nth) =>
      (nth % 2 === 0 ? north : south).post("/api/data", pushBody(1, 2), { "idempotency-key": "together" }),
    ),
  );
  expect(new Set(both.map(({ status }) => status))).toEqual(new Set([200]));
  expect(new Set(both.map((answer) => answer.body.operationId)).size).toBe(1);
  expect(await south.post("/api/data", pushBody(1, 3), { "idempotency-key": "together" })).toMatchObject({
    status: 422,
    body: { code: "idempotency-conflict" },
  });
  expect(await count("intake_receipts")).toBe(2);
  expect(await count("stored_files WHERE shelf LIKE 'intake %'")).toBe(2);
  expect(await openBelow(north.folder, south.folder)).toEqual([]);
  await north.seen();
  expect(await south.gateway.ledger.trace("twice")).toHaveLength(1);

  const { body: token } = await north.token();
  const authorization = `Bearer ${token["access_token"]}`;
  const large = pushBody(1, ...Array(100).keys());
  expect((await south.post("/api/data?operationId=large", large, { authorization })).status).toBe(200);
  // How much waits is known for a second.
  for (const rig of [north, south])
    expect(
      await until("a refusal", async () => {
        const { status, body: told } = await rig.post("/api/data", "[]");
        return status === 503 && told.code;
      }),
    ).toBe("backlog-full");
});

it("waiting bodies in the database count against the budget of every node, and are reported", async () => {
  const [north, south] = [await start("north"), await start("south")];
  await south.down();
  await south.up({ spool: { path: join(south.folder, "spool"), budget: "500B", headroom: "1MB" } });
  const body = pushBody(1, ...Array(20).keys());
  expect((await north.post("/api/data", body)).status).toBe(200);
  const told = await until("a refusal", async () => {
    const answer = await south.post("/api/data", "[]");
    return answer.status === 503 && answer.body;
  });
  expect(told.code).toBe("storage-full");
  const metrics = await (await askOperations(south.gateway, "/metrics")).text();
  expect(metrics).toContain(`headgate_spool_shared_bytes ${body.length}\n`);
  const health = await (await askOperations(south.gateway, "/health/ready")).text();
  expect(health).toContain("no files are taken");
});

it("a body that breaks off, one that is refused, and one of a killed node leave no bytes", async () => {
  const north = await start("north");
  const { hostname, port } = new URL(north.url);
  const broken = httpRequest({
    ...{ hostname, port, method: "POST", path: `/api/generic/${GUID}` },
    headers: { authorization: basic("device"), "content-length": 5_000_000 },
  });
  const failed = new Promise((resolve) => broken.on("error", resolve));
  broken.write(Buffer.alloc(2_000_000));
  const incoming = join(north.folder, "spool", "intake", "intake", "incoming");
  await until("it is being received", async () => (await readdir(incoming)).length === 1);
  broken.destroy();
  await failed;
  await until("nothing is left of it", async () => (await readdir(incoming)).length === 0);
  expect((await north.post("/api/data", "{}")).status).toBe(400);
  await north.down();
  await writeFile(join(incoming, "17"), "what a killed process had received");
  await north.up();
  expect(await readdir(incoming)).toEqual([]);
  expect([
    await count("stored_files WHERE shelf LIKE 'intake %'"),
    await count("stored_pieces"),
    await count("intake_receipts"),
  ]).toEqual([0, 0, 0]);
});

it("an unreachable database is answered by 503, and a repeated body is accepted later", async () => {
  const door = await Door.before(database.url);
  try {
    const url = database.url.replace(/:\d+\//, `:${new URL(door.url).port}/`);
    const north = await start("north", {}, { ledger: { ...ledgerOf("north"), url } });
    door.shutFor(60_000);
    const refused = await north.post("/api/data?operationId=again", pushBody(1, 1));
    expect(refused).toMatchObject({ status: 503, body: { code: "unavailable" } });
    expect(refused.headers.get("retry-after")).toBe("30");
    await door.open();
    await until(
      "it is taken",
      async () => (await north.post("/api/data?operationId=again", pushBody(1, 1))).status === 200,
    );
    expect(await count("intake_receipts")).toBe(1);
  } finally {
    for (const rig of rigs) await rig.down();
    await door.close();
  }
});

describe("bodies that wait in the ledger", () => {
  it("are listed by `check`, and reported by `ledger check` when they are missing", async () => {
    const north = await start("north");
    await north.post("/api/data?operationId=one", pushBody(1, 1));
    await north.post("/storage?Filename=a.txt", upload("a.txt", "x"));
    await north.seen();
    const config = join(north.folder, "gateway.yaml");
    const settings = intakeSettings(north.folder, north.hub, { ledger: ledgerOf("north") });
    await writeFile(config, stringify(settings));
    // What other tests have left in the shared ledger may be delivered meanwhile: then it is asked again.
    await until("it is told", async () => {
      const waiting = await count("stored_files WHERE shelf LIKE 'intake %'");
      const found: readonly Finding[] = JSON.parse((await headgate("check", "-c", config, "--json")).stdout);
      const of = (part: string) => found.filter((one) => one.part === part).map(({ what }) => what);
      expect(of("ledger")).toEqual(["it can be read, in the schema shared"]);
      expect(waiting).toBeGreaterThan(1);
      const kinds = new RegExp(`^(?=.*${waiting - 1} in the standard format)(?=.*1 no trigger claims)`);
      return (
        of("drop intake").includes(`${waiting} received bodies wait to be delivered`) &&
        of("drop intake").some((what) => kinds.test(what))
      );
    });

    const mapped = await until("it is mapped", async () => (await north.gateway.ledger.runsIn(["mapped"]))[0]);
    await north.down();
    for (const folder of ["inputs", "segments"]) await rm(join(north.folder, "spool", folder), { recursive: true });
    const check = async () => {
      const { stdout } = await headgate("ledger", "check", "-c", config, "--json");
      const all: readonly { about: string; subject: string }[] = JSON.parse(stdout);
      return all.filter(({ subject }) => subject.includes(mapped.id)).map(({ about }) => about);
    };
    expect(await check()).toEqual(["segment"]);
    await database.query("DELETE FROM shared.stored_files WHERE path = $1", [mapped.path]);
    expect(await check()).toEqual(["segment", "drop"]);
  });

  it("are unavailable for `check` where there is no ledger yet, and where it cannot be reached", async () => {
    const folder = await mkdtemp(join(tmpdir(), "headgate-"));
    try {
      const config = join(folder, "gateway.yaml");
      const about = async (ledger: object) => {
        await writeFile(config, stringify(intakeSettings(folder, "http://127.0.0.1:9", { ledger })));
        const found: readonly Finding[] = JSON.parse((await headgate("check", "-c", config, "--json")).stdout);
        return found.find(({ part }) => part === "ledger");
      };
      expect(await about(ledgerOf("north"))).toMatchObject({
        level: "ok",
        what: expect.stringContaining("the gateway creates it when it starts"),
      });
      const nobody = database.url.replace(/:\d+\//, ":9/");
      expect(await about({ ...ledgerOf("north"), url: nobody })).toMatchObject({
        level: "failed",
        what: expect.stringContaining("cannot be used now"),
      });
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});

it("a shared ledger is refused while acknowledged bodies of the single gateway remain", async () => {
  const alone = await IntakeRig.start();
  rigs.push(alone);
  await alone.post("/api/data", pushBody(1, 1));
  await alone.down();
  await expect(alone.up({ ledger: ledgerOf("north") })).rejects.toMatchObject({ code: "HG-INTK-003" });
  await alone.up();
});
