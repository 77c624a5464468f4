/** One rule: what a schema marks as secret is written nowhere. */
import { expect, test, vi } from "vitest";
import { z } from "zod";
import { printError, printJson } from "#app/cli/output.ts";
import { parseConfigText } from "#core/config/document.ts";
import { generatedAs, inputSchemaOf } from "#core/config/json-schema.ts";
import { secretsOf } from "#core/config/secrets.ts";
import { ConfigError } from "#core/errors.ts";
import { createLog } from "#core/log.ts";
import { keepSecret, masked } from "#core/secrets.ts";
import { gatewayConfig } from "#gateway/config.ts";
import { oneLine } from "#gateway/operations/notification-text.ts";
import { hubOptions } from "#hub/options.ts";

const GATEWAY = `
services:
  - name: hub
    base: http://127.0.0.1:1
    push: http://127.0.0.1:1/push
    token: http://127.0.0.1:1/token
    proxy: http://me:proxy%40word@proxy.example.org:3128
    credentials: { clientId: c, clientSecret: client-word-1, username: u, password: service-word-1 }
ledger: { kind: postgres, url: "postgres://me:ledger-word-1@db.example.org/metering" }
drops:
  - { name: plant, kind: ftp, host: h, username: u, password: ftp-word-1 }
triggers:
  - { name: t, mapper: standard, fileNamePatternMatches: [{ filterType: EndsWith, value: .csv }] }
operations:
  access: { tokens: [{ name: p, token: operations-word-1 }] }
  tracing: { headers: { "x-key": tracing-word-1 } }
`;
const WORDS = [
  ...["client-word-1", "service-word-1", "ledger-word-1", "ftp-word-1", "operations-word-1", "tracing-word-1"],
  ...["proxy%40word", "proxy@word"],
];

function caught(work: () => void): string {
  const written: string[] = [];
  const spies = [process.stdout, process.stderr].map((stream) =>
    vi.spyOn(stream, "write").mockImplementation((text) => written.push(String(text)) > 0),
  );
  try {
    work();
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
  return written.join("");
}

test("secrets of a gateway are in no log line, no error and no output of a command", () => {
  parseConfigText(GATEWAY, gatewayConfig, "gateway.yaml");
  const said = `cannot connect with ${WORDS.join(" and ")} and "quotes"`;
  const written = caught(() => {
    createLog("info", { write: (line) => void process.stdout.write(line) }).warn(
      { url: said, err: new Error(said) },
      said,
    );
    printError(new ConfigError("HG-CONF-001", { operation: "test", subject: said, message: said, hint: said }));
    printError(new Error(said));
    printJson({ finding: said });
  });
  for (const word of WORDS) expect(written).not.toContain(word);
  expect(written).toContain("cannot connect with [redacted]");
  expect(masked("the proxy proxy.example.org and the database db.example.org")).not.toContain("[redacted]");
});

test("secrets of a hub are masked as well, also in a file that is refused", () => {
  const refused = `store: { kind: postgres, url: "postgres://me:hub-word-1@db/metering" }
clients: [{ id: gateway, secret: hub-client-word }]
users: [{ username: u, password: hub-user-word, accounts: [1] }]
webhook: { secret: hub-webhook-word, unknown: 1 }`;
  expect(() => parseConfigText(refused, hubOptions, "hub.yaml")).toThrow("unknown key");
  for (const word of ["hub-word-1", "hub-client-word", "hub-user-word", "hub-webhook-word"])
    expect(masked(`x ${word} x`)).toBe("x [redacted] x");
});

test("every marked value of a schema is masked: in lists, records, and one of several kinds", () => {
  const secret = z.string().meta({ secret: true });
  const schema = z.object({
    list: z.array(
      z.discriminatedUnion("kind", [
        z.object({ kind: z.literal("a"), word: secret }),
        z.object({ kind: z.literal("b"), plain: z.string() }),
      ]),
    ),
    record: z.record(z.string(), secret),
  });
  const data = {
    list: [
      { kind: "a", word: "in-a-list" },
      { kind: "b", plain: "plain" },
    ],
    record: { x: "in-a-record" },
  };
  expect(secretsOf(data, schema)).toEqual(["in-a-list", "in-a-record"]);
});

test("a secret that is a word of the product, or short, is masked only where it is a secret", () => {
  const refused = `store: { kind: postgres, url: "postgres://me:hosts@db/metering" }
clients: [{ id: gateway, secret: password }]
users: [{ username: u, password: headgate_ready, accounts: [1] }]
unknown: 1`;
  expect(() => parseConfigText(refused, hubOptions, "hub.yaml")).toThrow("unknown key");
  const plain = 'headgate_ready 1, the password of hosts, {"password":"x","kind":"password"}';
  expect(masked(plain)).toBe(plain);
  expect(masked('{"clientSecret":"password"}')).toBe('{"clientSecret":"[redacted]"}');
  expect(masked('"password": "headgate_ready"')).toBe('"password": "[redacted]"');
  expect(masked("no answer of postgres://you:hosts@db/x")).toBe("no answer of postgres://you:[redacted]@db/x");
});

test("a secret is masked before a text is cut", () => {
  keepSecret("a-very-long-word-of-ours");
  const line = oneLine(`${"x".repeat(390)}a-very-long-word-of-ours`);
  expect(line).not.toContain("a-very");
});

test.for([
  ["gateway.schema.json", gatewayConfig],
  ["hub.schema.json", hubOptions],
] as const)("%s marks as secret what its schema marks, and an unreadable file is derived again", ([file, schema]) => {
  // Another object, so that the file is not taken for it.
  const derived = inputSchemaOf(schema.meta({}));
  expect(inputSchemaOf(generatedAs(schema.meta({}), file))).toEqual(expect.objectContaining(derived));
  expect(inputSchemaOf(generatedAs(schema.meta({}), "no such file.json"))).toEqual(derived);
});
