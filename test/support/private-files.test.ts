import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { filesOf, makeFolderAsAround, narrowModes } from "#core/private-files.ts";

const NOBODY = 65_534;
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "headgate-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const modeOf = (name: string) => statSync(join(folder, name)).mode & 0o777;

test("a folder that others can enter is narrowed with everything below it, without the targets of links", () => {
  mkdirSync(join(folder, "spool/inner"), { recursive: true });
  for (const name of ["spool/inner/a", "outside"]) writeFileSync(join(folder, name), "");
  symlinkSync(join(folder, "outside"), join(folder, "spool/link"));
  for (const [name, mode] of [
    ["spool", 0o755],
    ["spool/inner", 0o777],
    ["spool/inner/a", 0o664],
    ["outside", 0o644],
  ] as const)
    chmodSync(join(folder, name), mode);
  expect(narrowModes([join(folder, "spool"), join(folder, "missing")])).toEqual([join(folder, "spool")]);
  expect(["spool", "spool/inner", "spool/inner/a", "outside"].map(modeOf)).toEqual([0o700, 0o700, 0o600, 0o644]);
  expect(narrowModes([join(folder, "spool")])).toEqual([]);
});

test("files beside a database belong to it, and no others", () => {
  for (const name of ["x.sqlite", "x.sqlite-wal", "x.sqlite.lock", "x.sqlite2", "y.sqlite"])
    writeFileSync(join(folder, name), "");
  expect(filesOf(join(folder, "x.sqlite")).sort()).toEqual(
    ["x.sqlite", "x.sqlite-wal", "x.sqlite.lock"].map((name) => join(folder, name)),
  );
  const missing = join(folder, "missing/x.sqlite");
  expect(filesOf(missing)).toEqual([missing]);
  expect(narrowModes([missing, "/dev/null/x.sqlite"])).toEqual([]);
});

test("a folder beside a spool, such as a drop, keeps its mode", () => {
  for (const name of ["spool", "spool-in", "spool.old"]) {
    mkdirSync(join(folder, name));
    chmodSync(join(folder, name), 0o775);
  }
  writeFileSync(join(folder, "spool.daemon"), "");
  const found = filesOf(join(folder, "spool"));
  expect(found.sort()).toEqual(["spool", "spool.daemon"].map((name) => join(folder, name)));
  narrowModes(found);
  expect(["spool", "spool-in", "spool.old"].map(modeOf)).toEqual([0o700, 0o775, 0o775]);
});

test("a file of another user is refused with the command to run", () => {
  const script = `import { narrowModes } from ${JSON.stringify(join(import.meta.dirname, "../../src/core/private-files.ts"))};
    try { narrowModes(["/etc/passwd"]); } catch (thrown) { console.log(thrown.code, thrown.message, thrown.hint); }`;
  const as = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
    encoding: "utf8",
    ...as,
  });
  expect(stdout, stderr).toMatch(/^HG-CONF-005 other users can read \/etc\/passwd, and it belongs to another user/);
  expect(stdout).toContain("&& chmod -R go-rwx '/etc/passwd'");
});

test("a folder for an archive has the mode of its parent, whatever the umask", async () => {
  const before = process.umask(0o077);
  try {
    chmodSync(folder, 0o775);
    await makeFolderAsAround(join(folder, "archive"));
    expect(modeOf("archive")).toBe(0o775);
  } finally {
    process.umask(before);
  }
});
