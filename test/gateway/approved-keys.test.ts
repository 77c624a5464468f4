import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createLog } from "#core/log.ts";
import { dropOptions } from "#gateway/drops/options.ts";
import { copyApprovedKeys } from "#gateway/fleet.ts";

let folder: string;
let lines: string[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "headgate-"));
  lines = [];
});
afterEach(() => rmSync(folder, { recursive: true }));

const log = createLog("info", { write: (line) => void lines.push(line) });
const file = (name: string) => join(folder, name);
const dropOf = (name: string, host: string) =>
  dropOptions.parse({
    kind: "sftp",
    ...{
      name,
      host,
      path: "/",
      approvedHosts: file(name),
      username: "u",
      password: "p",
      hostKeys: [`SHA256:${"x".repeat(43)}`],
    },
  });
const NOTE = '# approved by "Ada" at 2026-03-01T00:00:00.000Z, for the drop "field": SHA256:abc';
const ENTRY = "meters.example.com ssh-ed25519 AAAA";

async function copy(drop: string, ...approvals: readonly string[]): Promise<readonly string[]> {
  const drops = [dropOf("field", "meters.example.com"), dropOf("other", "other.example.com")];
  const list = async () => approvals.map((one) => ({ drop, lines: one, approvedAt: "2026-03-01T00:00:00.000Z" }));
  return [...(await copyApprovedKeys(drops, { ledger: { approvedKeys: { list, keep: async () => {} } }, log }))];
}

describe("approved host keys of other nodes", () => {
  it("are added once, also to a file with other ends of lines", async () => {
    expect(await copy("field", `${NOTE}\n${ENTRY}\n`)).toEqual(["field"]);
    expect(readFileSync(file("field"), "utf8")).toBe(`${NOTE}\n${ENTRY}\n`);
    expect(await copy("field", `${NOTE}\n${ENTRY}\n`)).toEqual([]);
    writeFileSync(file("field"), `${NOTE}\r\n`);
    expect(await copy("field", `${NOTE}\n${ENTRY}\n`)).toEqual([]);
  });

  it.each([
    ["for every server", `${NOTE}\n* ssh-ed25519 AAAA\n`],
    ["for another server", `${NOTE}\nmeters.example.org ssh-ed25519 AAAA\n`],
    ["with a further entry", `${NOTE}\n${ENTRY}\n* ssh-ed25519 AAAA\n`],
    ["with a marker", `${NOTE}\n@cert-authority ${ENTRY}\n`],
    ["without a comment", `${ENTRY}\n${ENTRY}\n`],
  ])("are not added %s", async (_words, approval) => {
    expect(await copy("field", approval)).toEqual([]);
    expect(() => readFileSync(file("field"))).toThrow(/ENOENT/);
  });

  it("do not follow a drop's name to another server", async () => {
    expect(await copy("other", `${NOTE}\n${ENTRY}\n`)).toEqual([]);
  });

  it("that cannot be written are reported, and hinder no other", async () => {
    mkdirSync(file("field"));
    expect(await copy("field", `${NOTE}\n${ENTRY}\n`)).toEqual([]);
    expect(lines.join("")).toMatch(/"drop":"field".*could not be added to the file of this node/);
  });
});
