import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Ledger } from "../../src/ledger/ledger.ts";
import { openLedger } from "../../src/ledger/open.ts";
import { alarmSender } from "../../src/operations/alarm.ts";
import { LateFiles, type MissingFile, missingWords } from "../../src/operations/late-files.ts";
import { type Clock, systemClock } from "../../src/support/clock.ts";
import { silentLog } from "../../src/support/log.ts";
import { expectOptions, missingFiles } from "../../src/triggers/expectation.ts";
import { verifyWebhook } from "../../src/wire/index.ts";

const SECRET = "a secret of sixteen";
let folder: string;
let ledger: Ledger;
let now: Temporal.Instant;
const clock: Clock = { ...systemClock, now: () => now };
let answers: number[];
let received: { body: string; signature: string | undefined }[];
const server = createServer((request, response) => {
  let body = "";
  request.on("data", (part) => {
    body += part;
  });
  request.on("end", () => {
    received.push({ body, signature: request.headers["x-headgate-signature"] as string | undefined });
    response.writeHead(answers.shift() ?? 200).end();
  });
});

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "headgate-"));
  now = Temporal.Instant.from("2026-03-09T05:00:00Z");
  ledger = await openLedger({ kind: "sqlite", path: join(folder, "ledger.sqlite") }, { clock });
  answers = [];
  received = [];
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});
afterEach(async () => {
  await ledger.close();
  rmSync(folder, { recursive: true });
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

async function fileComes(trigger: string): Promise<void> {
  const poll = await ledger.beginPoll("in");
  const [sighting] = await poll.record([{ path: `${now.epochMilliseconds}.csv`, size: 1, mtime: "1" }]);
  await poll.complete();
  const binding = {
    trigger,
    service: "hub",
    mapper: { name: "standard", version: "1", digest: "" },
    settings: {},
    rows: "strict" as const,
    limits: { pointsMax: 1, bytesMax: 1 },
  };
  await ledger.openRun(sighting?.arrival.id ?? 0, binding, "lane");
}

function watcher(counted: MissingFile[][] = []): LateFiles {
  const triggers = [
    {
      name: "daily",
      state: "Active",
      expect: expectOptions.parse({ by: "07:00", timeZone: "Europe/Brussels" }),
    },
  ];
  const since = Temporal.Instant.from("2026-03-01T00:00:00Z");
  const { port } = server.address() as AddressInfo;
  return new LateFiles({
    find: () => missingFiles(triggers, ledger, since, now),
    send: alarmSender({ url: `http://127.0.0.1:${port}/alarm`, secret: SECRET }, clock),
    count: (missing) => counted.push([...missing]),
    clock,
    log: silentLog,
  });
}

describe("a file that does not come by its time", () => {
  it("is told once for each due time, signed, and no more once it came", async () => {
    const late = watcher();
    await fileComes("daily");
    await late.look();
    expect(received).toEqual([]);

    now = Temporal.Instant.from("2026-03-10T06:00:01Z");
    await late.look();
    await late.look();
    expect(received).toHaveLength(1);
    const [alarm] = received;
    expect(
      verifyWebhook(alarm?.body ?? "", SECRET, alarm?.signature, Math.floor(now.epochMilliseconds / 1000)),
    ).toBeNull();
    expect(JSON.parse(alarm?.body ?? "")).toMatchObject({
      kind: "late-file",
      id: "late:daily:2026-03-10T06:00:00Z",
      trigger: "daily",
      lastSeen: "2026-03-09T05:00:00.000Z",
    });

    await fileComes("daily");
    await late.look();
    expect(late.missing()).toEqual([]);
    expect(received).toHaveLength(1);
  });

  it("is told again until the receiver accepts", async () => {
    const late = watcher();
    now = Temporal.Instant.from("2026-03-10T06:00:01Z");
    answers = [503, 200];
    await late.look();
    await late.look();
    await late.look();
    expect(received).toHaveLength(2);
    expect(received[0]?.body).toContain("late:daily");
  });

  it("is counted by trigger at every look", async () => {
    const counted: MissingFile[][] = [];
    now = Temporal.Instant.from("2026-03-10T06:00:01Z");
    await watcher(counted).look();
    expect(counted).toEqual([[{ trigger: "daily", due: "2026-03-10T06:00:00Z", lastSeen: null }]]);
    expect(missingWords(counted[0]?.[0] as MissingFile)).toBe(
      "trigger daily expected a file by 2026-03-10T06:00:00Z; none has come yet",
    );
  });
});
