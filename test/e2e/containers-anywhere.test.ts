/** Compressed arrivals from servers and from the HTTP intake, by the gateway as a real process. */
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { TracedFile } from "#gateway/ledger/ledger.ts";
import { zip } from "../runs/archives.ts";
import type { HeadgateProcess } from "./processes.ts";
import { type Readings, readingsOf } from "./readings.ts";
import { Rig, type Stage, standardTrigger } from "./rig.ts";
import { layThreeDrops, type ThreeDrops } from "./three-drops.ts";

const BROKEN = "date,value,variable_id\n2026-03-01T00:00:00Z,not a number,1\n";
const CUT_AT_BYTES = 40_000;

let rig: Rig;
beforeAll(async () => {
  rig = await Rig.start();
});
afterAll(() => rig.close());

async function readings(name: string, count = 8): Promise<Readings> {
  return readingsOf(await rig.variable(name), count);
}

async function untilIdle(stage: Stage, code: number) {
  const ended = await stage.untilIdle();
  expect(ended.code, ended.stderr).toBe(code);
  return JSON.parse(ended.stdout);
}

function traced(stage: Stage, name: string): Promise<readonly TracedFile[]> {
  return stage.inspect((ledger) => ledger.trace(name));
}

async function expectStored(...expected: readonly Readings[]): Promise<void> {
  for (const { variableId, points } of expected) expect(await rig.stored(variableId)).toEqual(points);
}

describe.for(["sftp", "ftp"] as const)("an %s drop", (kind) => {
  let drops: ThreeDrops;
  afterAll(() => drops.close());

  test("has its containers opened, each entry delivered once, and archived when all have ended well", async () => {
    drops = await layThreeDrops(rig, `packed-${kind}`);
    const { stage, folders, sftpFaults } = drops;
    const folder = folders[kind];
    const [a, b, c, late] = [
      await readings(`${kind}-a`),
      await readings(`${kind}-b`),
      await readings(`${kind}-c`),
      await readings(`${kind}-late`),
    ];
    // Bytes that do not pack, so that the first fetch is cut in the middle.
    const ballast = Buffer.from(Array.from({ length: 100_000 }, (_, at) => (at * at) % 251));
    const whole = zip([
      { name: "standard_a.csv", content: a.csv },
      { name: "__MACOSX/x", content: ballast, stored: true },
      { name: "deep/standard_b.csv", content: b.csv },
    ]);
    const mixed = (second: string) =>
      zip([
        { name: "standard_none.csv", content: "date,value,variable_id\n" },
        { name: "standard_late.csv", content: second },
      ]);
    await stage.put("in/whole.zip", whole, folder);
    await stage.put("standard_c.csv.gz", gzipSync(c.csv), folder);
    await stage.put("mixed.zip", mixed(BROKEN), folder);
    if (kind === "sftp") sftpFaults.cutAfterBytes = CUT_AT_BYTES;

    const first = await untilIdle(stage, 1);
    expect(first.drops[kind].files).toBe(3);
    expect(first.files).toEqual({ delivered: 3, empty: 1, quarantined: 1 });
    await expectStored(a, b, c);
    if (kind === "sftp") expect(sftpFaults.cutAfterBytes, "the connection was cut").toBeNull();
    expect(await stage.files(folder)).toEqual([
      expect.stringMatching(/^archive\/in\/whole\..*zip$/),
      expect.stringMatching(/^archive\/standard_c\.csv\..*gz$/),
      "mixed.zip",
    ]);
    const [container] = await traced(stage, "mixed.zip");
    expect(container?.runs[0]?.run.reason?.message).toContain("standard_late.csv is quarantined");

    // The same bytes again, and the stubborn one put right.
    await stage.put("in/whole.zip", whole, folder);
    await stage.put("mixed.zip", mixed(late.csv), folder);
    const ended = await stage.untilIdle();
    const second = JSON.parse(ended.stdout);
    expect(second.files).toMatchObject({ delivered: 1 });
    expect(second.files.duplicate).toBeGreaterThanOrEqual(1);
    await expectStored(a, b, c, late);
    expect(await stage.files(folder)).toContainEqual(expect.stringMatching(/^archive\/mixed\..*zip$/));
    expect(await stage.files(folder)).not.toContain("mixed.zip");
    expect(stage.lane.conflicts).toEqual([]);
  });
});

describe("a zip file that is uploaded to the intake", () => {
  const AUTHORIZATION = `Basic ${Buffer.from("device:device-password").toString("base64")}`;
  const uploads = { ...standardTrigger, name: "uploads", ingestionType: "UploadInStorage" };
  const settings = {
    drops: [
      {
        name: "intake",
        kind: "http",
        listen: "127.0.0.1:0",
        every: "200ms",
        users: [{ username: "device", password: "device-password" }],
      },
    ],
    // The first would take files of the same name that came from a server.
    triggers: [standardTrigger, uploads],
  };

  async function upload(gateway: HeadgateProcess, name: string, bytes: Buffer): Promise<string> {
    const url = (await gateway.said("stderr", /"intakes":\{"intake":"([^"]+)"/))[1] ?? "";
    const form = new FormData();
    form.append("file", new Blob([new Uint8Array(bytes)]), name);
    const headers = { authorization: AUTHORIZATION };
    const answer = await fetch(`${url}/storage?Filename=${name}`, { method: "POST", body: form, headers });
    const text = await answer.text();
    expect(answer.status, text).toBeLessThan(300);
    return /\d{6,}/.exec(text)?.[0] ?? "";
  }

  test("has its entries processed as uploads under its id, and is deleted when all have ended well", async () => {
    const stage = await rig.stage("packed-upload", settings);
    const [a, b, c] = [await readings("upload-a"), await readings("upload-b"), await readings("upload-c")];
    const gateway = stage.gateway([]);
    const id = await upload(
      gateway,
      "month.zip",
      zip([
        { name: "standard_a.csv", content: a.csv },
        { name: "deep/standard_b.csv", content: b.csv },
      ]),
    );
    const staying = await upload(
      gateway,
      "stays.zip",
      zip([
        { name: "standard_c.csv", content: c.csv },
        { name: "notes.txt", content: "nobody wants this" },
      ]),
    );
    await gateway.end("SIGTERM");
    await untilIdle(stage, 0);

    await expectStored(a, b, c);
    const senders = { "standard_a.csv": id, "standard_b.csv": id, "standard_c.csv": staying };
    for (const [name, sender] of Object.entries(senders)) {
      const runs = (await traced(stage, name)).flatMap((file) => file.runs);
      expect(runs.map(({ run }) => run.binding)).toMatchObject([{ trigger: "uploads", operationPrefix: sender }]);
      expect(runs[0]?.run.state).toMatch(/accepted|confirmed/);
    }
    const [container] = await traced(stage, "stays.zip");
    expect(container?.runs[0]?.run).toMatchObject({
      state: "opened",
      reason: { message: expect.stringContaining("notes.txt is unmatched") },
    });
    const bodies = join(stage.folder, "state", "spool", "intake", "intake", "bodies");
    expect(await stage.files(bodies)).toEqual([expect.stringMatching(/stays\.zip$/)]);
  });
});
