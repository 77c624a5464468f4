/** Uploads and downloads whose client leaves: the hub keeps no file open, and sees no fault of its own. */
import { readdir, readlink } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createLog } from "#core/log.ts";
import { startHub } from "#hub/hub.ts";
import { hubOptions } from "#hub/options.ts";
import { LITTLE_HASHING as hashCost } from "../../support/hash-cost.ts";
import { callsOf, type HubCalls, multipartOf, rawOptions, temporaryDirectory } from "../fixture.ts";

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let hub: Awaited<ReturnType<typeof startHub>>;
let calls: HubCalls;
let lines: string[];
beforeEach(async () => {
  directory = await temporaryDirectory();
  lines = [];
  const log = createLog("info", { write: (line: string) => void lines.push(line) });
  hub = await startHub(hubOptions.parse(rawOptions(directory.path)), { log, hashCost });
  calls = callsOf(() => hub.url);
});
afterEach(async () => {
  await hub.close();
  await directory.remove();
});

const folder = () => join(directory.path, "files");

/** Files of the folder that this process has open. */
async function open(): Promise<string[]> {
  const all = await readdir("/proc/self/fd");
  const targets = await Promise.all(all.map((one) => readlink(`/proc/self/fd/${one}`).catch(() => "")));
  return targets.filter((target) => target.startsWith(folder()));
}

const faults = () => lines.filter((line) => /"level":(50|60|"error"|"fatal")/.test(line));

test.runIf(process.platform === "linux")("a download that is broken off leaves no file open", async () => {
  const large = new Uint8Array(30_000_000);
  const ids = [(await calls.upload(large, "a.bin")).body, (await calls.upload(large.subarray(1), "b.bin")).body];
  for (const query of [`ids=${ids[0]}`, `ids=${ids[0]}&ids=${ids[1]}`]) {
    const leaving = new AbortController();
    const authorization = `Bearer ${await calls.token()}`;
    const init = { headers: { authorization }, signal: leaving.signal };
    const answer = await fetch(`${hub.url}/storage/file?${query}`, init);
    expect(answer.status).toBe(200);
    await answer.body?.getReader().read();
    expect(await open()).toHaveLength(1);
    leaving.abort();
    await expect.poll(open).toEqual([]);
  }
  expect(faults()).toEqual([]);
});

test.runIf(process.platform === "linux")("an upload that is broken off leaves no file at all", async () => {
  const { raw, headers } = multipartOf(new Uint8Array(1_000_000));
  const authorization = `Bearer ${await calls.token()}`;
  const sending = request(`${hub.url}/storage?Filename=x.csv`, {
    method: "POST",
    headers: { authorization, ...headers },
  });
  sending.on("error", () => undefined);
  sending.write(raw.subarray(0, 500_000));
  await expect.poll(open).toHaveLength(1);
  sending.destroy();
  await expect.poll(open).toEqual([]);
  await expect.poll(() => readdir(join(folder(), "incoming"))).toEqual([]);
  expect(await calls.get("/storage")).toEqual([]);
  expect(faults()).toEqual([]);
});
