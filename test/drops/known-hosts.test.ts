import { createHash, createHmac, randomBytes } from "node:crypto";
import { describe, expect, test } from "vitest";
import { readKnownHosts } from "#gateway/drops/sftp/known-hosts.ts";

const key = randomBytes(51);
const other = randomBytes(51);
const fingerprint = (of: Buffer) => `SHA256:${createHash("sha256").update(of).digest("base64").replace(/=+$/, "")}`;
const line = (names: string, of = key, type = "ssh-ed25519") => `${names} ${type} ${of.toString("base64")} comment`;
const allowed = (text: string, host = "field.example", port = 22) => [...readKnownHosts(text, host, port).allowed];

function hashed(name: string): string {
  const salt = randomBytes(20);
  return `|1|${salt.toString("base64")}|${createHmac("sha1", salt).update(name).digest("base64")}`;
}

describe("a file of known hosts", () => {
  test.for([
    ["field.example", 22],
    ["other,field.example,192.0.2.1", 22],
    ["FIELD.example", 22],
    ["*.example", 22],
    ["fi?ld.example", 22],
    ["[field.example]:2222", 2222],
    [hashed("field.example"), 22],
    [hashed("[field.example]:2222"), 2222],
  ] as const)("permits the key of %s at port %i", ([names, port]) => {
    expect(allowed(line(names), "field.example", port)).toEqual([fingerprint(key)]);
  });

  test.for([
    ["field.example", 2222],
    ["[field.example]:2222", 22],
    ["field-example", 22],
    ["*.example,!field.example", 22],
    [hashed("other.example"), 22],
    ["# field.example", 22],
  ] as const)("has no entry by %s of port %i", ([names, port]) => {
    expect(allowed(line(names), "field.example", port)).toEqual([]);
  });

  test("has revoked keys and counts authorities, which are not supported", () => {
    const text = [
      "# our servers",
      "",
      line("field.example"),
      line("@revoked field.example", other),
      line("@cert-authority *.example", other),
    ].join("\r\n");
    const keys = readKnownHosts(text, "field.example", 22);
    expect([...keys.allowed]).toEqual([fingerprint(key)]);
    expect([...keys.revoked]).toEqual([fingerprint(other)]);
    expect(keys.authorities).toBe(1);
    expect(keys.types).toEqual(["ssh-ed25519"]);
  });
});
