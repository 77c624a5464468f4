import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { loadDocument, parseConfigText } from "#core/config/document.ts";
import { ConfigError } from "#core/errors.ts";
import { nearestName } from "#core/nearest-name.ts";
import { duration, parseDuration, parseSize } from "#core/quantities.ts";

const folder = mkdtempSync(join(tmpdir(), "headgate-"));
afterAll(() => rmSync(folder, { recursive: true }));

const schema = z.strictObject({
  drops: z.array(
    z.discriminatedUnion("kind", [
      z.strictObject({
        kind: z.literal("local"),
        path: z.string(),
        settle: z.strictObject({ interval: duration("2s") }).prefault({}),
      }),
      z.strictObject({ kind: z.literal("sftp"), host: z.string(), password: z.string().optional() }),
    ]),
  ),
});

function faultOf(text: string): string {
  try {
    parseConfigText(text, schema, "gateway.yaml");
  } catch (thrown) {
    if (thrown instanceof ConfigError) return thrown.message;
    throw thrown;
  }
  return "no fault";
}

describe("a configuration document", () => {
  it("names an unknown key with its line and the nearest known key", () => {
    const fault = faultOf("drops:\n  - kind: local\n    path: ./in\n    settle:\n      intervall: 5s\n");
    expect(fault).toContain("line 5: unknown key drops[0].settle.intervall; did you mean interval?");
  });

  it.each(["constructor", "toString", "__proto__"])(
    "reads no variable %s from the environment, where none is set",
    (name) => {
      expect(faultOf(`drops: [{ kind: local, path: "\${env:${name}}" }]`)).toContain(
        `the environment variable ${name}, named by \${env:${name}}, is not set`,
      );
    },
  );

  it.each(["constructor", "__proto__"])("refuses the key %s like any other unknown key", (name) => {
    expect(faultOf(`drops:\n  - kind: local\n    path: ./in\n    ${name}: { x: 1 }\n`)).toContain(
      `line 4: unknown key drops[0].${name}`,
    );
  });

  it("suggests nothing when no key is near", () => {
    expect(faultOf("drops: []\nzzzzzzzz: 1\n")).toMatch(/line 2: unknown key zzzzzzzz$/m);
  });

  it("names a wrong value with its line and the expected type", () => {
    expect(faultOf("drops:\n  - kind: local\n    path: ./in\n    settle: { interval: soon }\n")).toContain(
      "line 4: drops[0].settle.interval: expected a duration such as",
    );
  });

  it("names every fault at once", () => {
    const fault = faultOf("drops:\n  - kind: local\n  - kind: sftp\n");
    expect(fault).toContain("drops[0].path");
    expect(fault).toContain("drops[1].host");
  });

  it("reports broken YAML with its place", () => {
    expect(faultOf("drops: [\n")).toMatch(/line 2/);
  });

  it.each(["  - { kind: sftp, host: ${env:NOPE}, password: x }", "  - { kind: sftp, host: [${env:NOPE}] }"])(
    "requests quotes where a secret breaks the YAML around it: %s",
    (line) => {
      const fault = faultOf(`drops:\n${line}\nother: 1\n`);
      expect(fault.split("\n").slice(1)).toEqual([
        '  line 2: put quotes around ${env:NOPE}, since it stands inside of { } or [ ]: "${env:NOPE}"',
      ]);
    },
  );

  it("lists every permitted form of a value of several kinds", () => {
    const rule = z.strictObject({
      finish: z.union([z.literal("leave"), z.literal("delete"), z.strictObject({ archive: z.string() })]),
    });
    const parse = (text: string) => () => parseConfigText(text, rule, "gateway.yaml");
    expect(parse("finish: archive\n")).toThrow('finish: expected "leave", "delete" or { archive: … }');
    expect(parse("finish: { archive: 5 }\n")).toThrow(/line 1: finish\.archive: .*string/);
  });

  it("treats an empty file as no settings", () => {
    expect(faultOf("")).toContain("drops");
  });

  it("resolves secrets from the environment and from files beside it", () => {
    process.env["HEADGATE_TEST_SECRET"] = "s3cret";
    writeFileSync(join(folder, "password"), "from-file\n");
    const path = join(folder, "gateway.yaml");
    writeFileSync(
      path,
      "drops:\n  - { kind: sftp, host: '${env:HEADGATE_TEST_SECRET}-host', password: '${file:password}' }\n",
    );
    expect(loadDocument(path, schema)).toEqual({
      drops: [{ kind: "sftp", host: "s3cret-host", password: "from-file" }],
    });
    delete process.env["HEADGATE_TEST_SECRET"];
  });

  it("names a secret that cannot be resolved", () => {
    const fault = faultOf("drops:\n  - { kind: sftp, host: h, password: '${env:HEADGATE_NOT_SET}' }\n");
    expect(fault).toContain("HEADGATE_NOT_SET");
  });

  it("names a file that cannot be read", () => {
    expect(() => loadDocument(join(folder, "absent.yaml"), schema)).toThrow(/cannot be read/);
  });

  it("is frozen as a whole", () => {
    const config = parseConfigText("drops: [{ kind: local, path: ./in }]", schema, "gateway.yaml");
    expect(Object.isFrozen(config) && Object.isFrozen(config.drops) && Object.isFrozen(config.drops[0])).toBe(true);
  });
});

describe("quantities", () => {
  it.each([
    ["250ms", 250],
    ["5s", 5_000],
    ["1.5m", 90_000],
    ["2h", 7_200_000],
    ["7d", 604_800_000],
  ])("reads the duration %s as %d ms", (text, ms) => expect(parseDuration(text)).toBe(ms));

  it.each([
    ["512B", 512],
    ["64KB", 64_000],
    ["4MB", 4_000_000],
    ["1GiB", 1_073_741_824],
  ])("reads the size %s as %d bytes", (text, bytes) => expect(parseSize(text)).toBe(bytes));

  it.each(["5", "s", "-5s", "5 weeks", "", "1e3s"])("refuses %j as a duration", (text) =>
    expect(parseDuration(text)).toBeUndefined(),
  );
});

describe("the nearest name", () => {
  it("corrects a typing error, also in capitals", () => {
    expect(nearestName("Intervall", ["interval", "observations"])).toBe("interval");
  });

  it("is empty when no name is near", () => {
    expect(nearestName("password", ["host", "port"])).toBeUndefined();
  });
});
