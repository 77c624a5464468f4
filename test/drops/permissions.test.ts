/** Permissions that flip. Root ignores modes, so the drop runs in a child of an unprivileged user. */
import { spawn } from "node:child_process";
import { chmod, chown, mkdir, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

const NOBODY = 65_534;
let ground: string;
let root: string;
let spool: string;

beforeEach(async () => {
  ground = await realpath(await mkdtemp(join(tmpdir(), "headgate-")));
  root = join(ground, "drop");
  spool = join(ground, "spool");
  await chmod(ground, 0o755);
  for (const folder of [root, spool]) await mkdir(folder);
  await writeFile(join(root, "a.csv"), "content");
  if (process.getuid?.() !== 0) return;
  for (const path of [root, spool, join(root, "a.csv")]) await chown(path, NOBODY, NOBODY);
});
afterEach(async () => {
  for (const folder of [root, spool]) await chmod(folder, 0o755);
  await rm(ground, { recursive: true, force: true });
});

describe.for([
  ["unreadable file", "a.csv", 0o000, "EACCES", { kind: "RejectedError", code: "HG-DROP-007" }],
  ["unreadable folder", ".", 0o000, "EACCES", { kind: "ConfigError", code: "HG-DROP-007" }],
  ["read-only folder", ".", 0o555, "EACCES", { kind: "RejectedError", code: "HG-DROP-007" }],
  [
    "unwritable folder",
    ".",
    0o555,
    "EACCES",
    {
      kind: "Error",
      code: expect.stringMatching(
        /^Error: writing a file is refused \(EACCES: .*\), which finish\.delivered: archive needs$/,
      ),
    },
  ],
  ["read-only spool", "../spool", 0o555, "EACCES", { kind: "TransientError", code: "HG-DROP-013" }],
] as const)("a local drop with an %s", ([fault, path, mode, proof, refusal]) => {
  test("reports it, leaves the file alone, and works when the permission is corrected", async () => {
    await chmod(join(root, path), mode);
    expect(await asNobody(fault)).toEqual({ proof, met: refusal });
    await chmod(join(root, path), 0o755);
    expect(await readFile(join(root, "a.csv"), "utf8")).toBe("content");
    const after = await asNobody(fault);
    expect(after).toEqual({ proof: "none", met: expect.not.objectContaining({ code: expect.anything() }) });
  });
});

async function asNobody(fault: string): Promise<{ proof: string; met: unknown }> {
  const child = spawn(process.execPath, [join(import.meta.dirname, "unprivileged-child.ts"), fault, root, spool], {
    stdio: ["ignore", "pipe", "inherit"],
    ...(process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}),
  });
  let told = "";
  child.stdout.on("data", (bytes: Buffer) => {
    told += bytes.toString();
  });
  const end = await new Promise((resolve) => child.once("close", (code, killer) => resolve(killer ?? code)));
  expect({ end, told }).toEqual({ end: 0, told: expect.stringContaining("{") });
  return JSON.parse(told);
}
