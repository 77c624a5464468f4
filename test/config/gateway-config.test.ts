import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { type GatewayConfig, loadGatewayConfig } from "#gateway/config.ts";
import { loadHubOptions } from "#hub/config.ts";

const folder = mkdtempSync(join(tmpdir(), "headgate-"));
afterAll(() => rmSync(folder, { recursive: true }));

const SERVICE = `
  - name: NAME
    base: http://127.0.0.1:1
    push: http://127.0.0.1:1/push
    token: http://127.0.0.1:1/token
    credentials: { clientId: c, clientSecret: s, username: u, password: p }`;
const DROP = "\n  - { name: in, kind: local, path: ./in }";

function load(parts: { services?: string; drops?: string; triggers?: string; more?: string }): GatewayConfig {
  const path = join(folder, "gateway.yaml");
  const services = parts.services ?? SERVICE.replace("NAME", "hub");
  writeFileSync(
    path,
    `services:${services}\ndrops:${parts.drops ?? DROP}\ntriggers:${parts.triggers ?? " []"}\n${parts.more ?? ""}\n`,
  );
  return loadGatewayConfig(path);
}

const TRIGGER = "\n  - { name: t, mapper: standard, fileNamePatternMatches: [{ filterType: EndsWith, value: .csv }]";

describe("the gateway's configuration", () => {
  it("resolves relative paths from its own folder", () => {
    const config = load({});
    expect(config.drops[0]).toMatchObject({ path: join(folder, "in") });
    expect(config.ledger).toMatchObject({ path: join(folder, "state/ledger.sqlite") });
    expect(config.spool.path).toBe(join(folder, "state/spool"));
    expect(config.mappers.folders).toEqual([join(folder, "mappers")]);
  });

  it("refuses two drops of one name", () => {
    expect(() => load({ drops: DROP + DROP })).toThrow(/drops\[1\]\.name: the name in is used twice/);
  });

  it("refuses a trigger that names an unknown service or drop", () => {
    expect(() => load({ triggers: `${TRIGGER}, service: cloud }` })).toThrow(/there is no service cloud; there is hub/);
    expect(() => load({ triggers: `${TRIGGER}, drops: [out] }` })).toThrow(/there is no drop out/);
  });

  it("requires the service of a trigger where there are several", () => {
    const services = SERVICE.replace("NAME", "one") + SERVICE.replace("NAME", "two");
    expect(() => load({ services, triggers: `${TRIGGER} }` })).toThrow(/name one of one, two/);
  });

  it("takes triggers of services in the list, or one entry alone, and keeps those of the file apart", () => {
    const alone = load({ triggers: " { from: service, every: 1m }" });
    expect(alone.triggers).toEqual([]);
    expect(alone.serviceTriggers).toMatchObject([{ service: "hub", every: 60_000, position: 0, rows: "strict" }]);
    const both = load({ triggers: `${TRIGGER} }\n  - { from: service, mappings: { A: b } }` });
    expect(both.triggers.map(({ name }) => name)).toEqual(["t"]);
    expect(both.serviceTriggers).toMatchObject([{ position: 1, every: 300_000, mappings: { A: "b" } }]);
    expect(load({ triggers: `${TRIGGER} }` }).serviceTriggers).toEqual([]);
  });

  it("refuses an entry for triggers of services that cannot work, with the place", () => {
    const services = SERVICE.replace("NAME", "one") + SERVICE.replace("NAME", "two");
    const entry = "\n  - { from: service, service: one }";
    expect(() => load({ services, triggers: " { from: service }" })).toThrow(/name one of one, two/);
    expect(() => load({ services, triggers: entry + entry })).toThrow(/triggers\[1\]\.service: .* named twice/);
    expect(() => load({ triggers: "\n  - { from: servic }" })).toThrow(/line \d+: triggers\[0\]\.from/);
    expect(() => load({ triggers: "\n  - { from: service, evry: 1m }" })).toThrow(/evry; did you mean every/);
    expect(() => load({ triggers: " { from: service, every: 0s }" })).toThrow(/every: expected at least/);
    expect(() => load({ triggers: " { from: service, drops: [out] }" })).toThrow(/there is no drop out/);
    expect(() => load({ triggers: `${TRIGGER.replace("t,", "'hub:7',")} }\n  - { from: service }` })).toThrow(
      /names that begin with hub: are those of the triggers at the service hub/,
    );
  });

  it("refuses to receive webhooks without a secret", () => {
    expect(() => load({ more: "operations: { webhook: { publicUrl: 'http://127.0.0.1:1' } }" })).toThrow(
      /only with a secret/,
    );
  });

  it("refuses outcomes by webhook where none can arrive", () => {
    expect(() => load({ more: "push: { confirm: { by: webhook } }" })).toThrow(/needs operations\.webhook\.publicUrl/);
  });

  it("shares a ledger between nodes, with their intakes", () => {
    const more = "ledger: { kind: postgres, url: 'postgres://gateway@db/headgate', node: north, lease: 10s }";
    expect(load({ more }).ledger).toMatchObject({ schema: "headgate", node: "north", lease: 10_000 });
    const users = "users: [{ username: u, password: a-long-password }]";
    const drops = `\n  - { name: intake, kind: http, listen: 127.0.0.1:0, ${users} }`;
    expect(load({ drops, more }).drops).toMatchObject([{ kind: "http" }]);
  });

  it("refuses a file that would never end its wait for confirmation", () => {
    expect(() =>
      load({ triggers: `${TRIGGER}, finishAfter: confirmed }`, more: "push: { confirm: { by: none } }" }),
    ).toThrow(/would never end/);
  });
});

describe("the configurations of the demo", () => {
  it("are valid", () => {
    const config = loadGatewayConfig(resolve(import.meta.dirname, "../../config/demo.gateway.yaml"));
    expect(config.drops.map((drop) => drop.kind)).toEqual(["local", "sftp", "ftp"]);
    const hub = loadHubOptions(resolve(import.meta.dirname, "../../config/demo.hub.yaml"));
    expect(hub.accounts).toHaveLength(1);
  });

  it("have paths of a hub that are relative to its file", () => {
    const path = join(folder, "hub.yaml");
    writeFileSync(path, "store: { kind: sqlite, path: ./hub.sqlite }\n");
    expect(loadHubOptions(path)).toMatchObject({ store: { path: join(folder, "hub.sqlite") }, files: {} });
    writeFileSync(path, "store: { kind: postgres, url: 'postgres://db/hub' }\nfiles: { path: ./files }\n");
    expect(loadHubOptions(path)).toMatchObject({ files: { path: join(folder, "files") } });
  });

  it.each(["false", "off", "data/files", "[]"])("refuse `files: %s` of a hub, and say what to write", (files) => {
    const path = join(folder, "hub.yaml");
    writeFileSync(path, `store: { kind: sqlite, path: ./hub.sqlite }\nfiles: ${files}\n`);
    expect(() => loadHubOptions(path)).toThrow(/line 2: files: .*path: data\/files.*cannot be switched off/);
  });

  it("refuse secrets of a hub that are easy to guess", () => {
    const path = join(folder, "hub.yaml");
    const load = (client: string, password: string, webhook: string) => {
      writeFileSync(
        path,
        `store: { kind: sqlite, path: ./hub.sqlite }
accounts: [{ id: 1, name: One }]
clients: [{ id: gateway, secret: ${client} }]
users: [{ username: u, password: ${password}, accounts: [1] }]
webhook: { secret: ${webhook} }
`,
      );
      return loadHubOptions(path);
    };
    const [long, key] = ["eight-ch", "a-key-of-16-char"];
    expect(load(long, long, key).clients).toHaveLength(1);
    expect(() => load("seven-c", long, key)).toThrow(/line 3: clients\[0\]\.secret: is shorter than 8 characters/);
    expect(() => load(long, "x", key)).toThrow(/line 4: users\[0\]\.password: is shorter than 8 characters/);
    expect(() => load(long, long, "x")).toThrow(/line 5: webhook\.secret: .*16/);
  });
});

it("a configuration of a gateway is refused for a hub, and the other way round, in one sentence", () => {
  load({});
  expect(() => loadHubOptions(join(folder, "gateway.yaml"))).toThrow(
    expect.objectContaining({ code: "HG-CONF-007", hint: expect.stringContaining("headgate gateway -c FILE") }),
  );
  const path = join(folder, "hub-alone.yaml");
  writeFileSync(path, "store: { kind: sqlite, path: ./hub.sqlite }\nusers: ${env:HEADGATE_NO_SUCH_VARIABLE}\n");
  expect(() => loadGatewayConfig(path)).toThrow(expect.objectContaining({ code: "HG-CONF-006" }));
  writeFileSync(path, "store: { kind: sqlite }\ndrops: []\n");
  expect(() => loadGatewayConfig(path)).toThrow("unknown key store");
});
