/**
 * Hours without the service cost disk, up to the budget; then nothing more is taken, and everything comes
 * when it is back.
 */
import { stat } from "node:fs/promises";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { Door } from "./breakable-link.ts";
import { expectStoredOnce } from "./kill-scenario.ts";
import { headgate } from "./processes.ts";
import { readingsOf } from "./readings.ts";
import { askOperations, localDrop, quickPush, Rig, type Stage } from "./rig.ts";
import { PATIENTLY, until } from "./wait.ts";

vi.setConfig(PATIENTLY);

const FILES = 24;
const ROWS = 100;
/**
 * For about a third of the files, as they came and as they are mapped; the last of them reaches the share at
 * which the spool counts as full.
 */
const BUDGET = 95_000;
/** The segment of a file may be larger than the file. */
const SLACK = 20_000;
const HOURS_MS = 600_000;

const AUTHORIZATION = `Basic ${Buffer.from("device:device-password").toString("base64")}`;
const intake = {
  name: "intake",
  kind: "http",
  listen: "127.0.0.1:0",
  every: "200ms",
  users: [{ username: "device", password: "device-password" }],
};

let rig: Rig;
let door: Door;
beforeAll(async () => {
  rig = await Rig.start();
  door = await Door.before(rig.proxy.url);
});
afterAll(async () => {
  await door.close();
  await rig.close();
});

interface Health {
  readonly status: number;
  readonly spool: { readonly ready: boolean; readonly reason: string } | undefined;
}

async function healthOf(url: string): Promise<Health> {
  const answer = await askOperations(url, "/health/ready");
  const { parts } = (await answer.json()) as { parts: { part: string; ready: boolean; reason: string }[] };
  return { status: answer.status, spool: parts.find(({ part }) => part === "spool") };
}

async function metric(url: string, name: string): Promise<number> {
  const text = await (await askOperations(url, "/metrics")).text();
  return Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1]);
}

async function bytesUnderWay(stage: Stage): Promise<number> {
  const files = await stage.files(`${stage.folder}/state/spool`);
  const counted = files.filter((path) => /^(inputs|segments)\//.test(path));
  const gone = { size: 0, nlink: 1 };
  // One may be gone meanwhile.
  const facts = counted.map((path) => stat(`${stage.folder}/state/spool/${path}`).catch(() => gone));
  // Runs that were taken in together share a file, which has a name for each.
  return (await Promise.all(facts)).reduce((sum, { size, nlink }) => sum + size / nlink, 0);
}

/** Within which what is in the spool is counted anew. */
const COUNTED_AGAIN_MS = 2_500;

function pushBody(url: string, body: string): Promise<Response> {
  const headers = { authorization: AUTHORIZATION, "content-type": "application/json" };
  return fetch(`${url}/api/data`, { method: "POST", headers, body });
}

test("during an outage the spool fills to its budget, and files at their drops are delivered once later", async () => {
  const stage = await rig.stage("outage", {
    spool: { path: "./state/spool", budget: `${BUDGET}B`, headroom: "1MB" },
    drops: [localDrop, intake],
    push: { ...quickPush, batch: { points: 50 }, drainRate: 2_000 },
  });
  stage.entrance = door.url;
  await stage.configure();
  const expected = await Promise.all(
    Array.from({ length: FILES }, async (_, index) =>
      readingsOf(await rig.variable(`outage-${index}`), ROWS, index * 1_000),
    ),
  );
  const [first] = expected;
  const names = expected.map((_, index) => `standard_${String(index).padStart(2, "0")}.csv`);
  for (const [index, { csv }] of expected.entries())
    await stage.put(names[index] ?? "", csv, stage.drop, 1 + FILES - index);
  door.shutFor(HOURS_MS);
  const gateway = stage.gateway([]);
  const url = (await gateway.said("stderr", /"operations":"([^"]+)"/))[1] ?? "";
  const intakeUrl = (await gateway.said("stderr", /"intakes":\{"intake":"([^"]+)"/))[1] ?? "";

  const full = await until("a full spool", async () => {
    const health = await healthOf(url);
    return health.spool?.ready === false && health;
  });
  expect(full).toMatchObject({ status: 503, spool: { reason: expect.stringContaining("spool.budget") } });
  expect(gateway.stderr).toContain("HG-SPOOL-005");
  expect(await metric(url, "headgate_spool_full")).toBe(1);
  // Room is reserved generously: what files really take is counted after they are mapped, and some more may come then.
  let fullSince = performance.now();
  const taken = await until("every file to be mapped, or to wait for room, and the spool to stay full", () =>
    stage.inspect(async (ledger) => {
      const left = await ledger.runsIn(["claimed", "fetched", "mapping"]);
      const mapped = await ledger.runsIn(["mapped", "delivering"]);
      const wait = left.every(({ reason }) => reason?.code === "HG-SPOOL-005");
      const atRest = wait && left.length + mapped.length === FILES;
      if (!atRest || (await healthOf(url)).spool?.ready !== false) fullSince = performance.now();
      return performance.now() - fullSince > COUNTED_AGAIN_MS && mapped;
    }),
  );
  expect(taken.length).toBeGreaterThan(1);
  expect(taken.length).toBeLessThan(FILES / 2 + 4);
  expect(taken.map(({ path }) => path).toSorted(), "the oldest came first").toEqual(names.slice(0, taken.length));
  expect(await bytesUnderWay(stage)).toBeLessThan(BUDGET + SLACK);
  expect(await stage.files(), "nothing is discarded, nothing leaves its drop").toEqual(names);
  const refused = await pushBody(intakeUrl, JSON.stringify([{ variableId: first?.variableId, data: first?.points }]));
  expect(refused.status).toBe(503);
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  const waiting = await headgate(["runs", "-c", stage.config, "--state", "claimed", "--json"]);
  expect(waiting.stdout).toContain("spool.budget");

  // Killed and started again while it is away: nothing of it is forgotten.
  await gateway.end("SIGKILL");
  const again = stage.gateway([]);
  await again.said("stderr", /HG-SPOOL-005/);
  const since = stage.lane.pushes.length;
  await door.open();
  await until("every file to be archived", async () =>
    (await stage.files()).every((path) => path.startsWith("archive/")),
  );
  await until("every run to be confirmed", () =>
    stage.inspect(async (ledger) => (await ledger.runsIn(["confirmed"])).length === FILES),
  );
  expect(await healthOf((await again.said("stderr", /"operations":"([^"]+)"/))[1] ?? "")).toMatchObject({
    status: 200,
    spool: { ready: true },
  });
  expect(again.stderr).toContain("the spool has space again");
  await again.end("SIGTERM");
  expect(stage.lane.conflicts).toEqual([]);
  expect(stage.lane.pushes.slice(since).length).toBe((FILES * ROWS) / 50);
  await expectStoredOnce(rig, expected);
});
