/** `headgate check` of a hub.yaml: what it says of the hub itself. */
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { stringify } from "yaml";
import { type HubFinding, probeHub } from "#app/platform/hub-probe.ts";
import { silentLog as log } from "#core/log.ts";
import { startHub } from "#hub/hub.ts";
import { hubOptions } from "#hub/options.ts";
import { openStore } from "#hub/store/open.ts";
import { CONFIGURATION } from "#hub/store/people/audit.ts";
import { HeadgateProcess } from "../e2e/processes.ts";
import { temporaryDirectory } from "../hub/fixture.ts";
import { startProvider } from "../hub/sign-on/real-provider.ts";

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
beforeEach(async () => {
  directory = await temporaryDirectory();
});
afterEach(() => directory.remove());

const raw = (more: object = {}) => ({
  listen: "127.0.0.1:0",
  store: { kind: "sqlite", path: join(directory.path, "hub.sqlite") },
  accounts: [{ id: 1, name: "First" }],
  clients: [{ id: "client", secret: "a-long-client-secret" }],
  users: [{ username: "manager", password: "a-long-password", accounts: [1], roles: ["Manager"] }],
  calculated: { engine: "none" },
  ...more,
});

/** Each finding as `level part about`, with its words. */
async function probed(more: object = {}) {
  const findings: HubFinding[] = [];
  const isRead = await probeHub(hubOptions.parse(raw(more)), (finding) => findings.push(finding));
  const words = findings.map(({ level, part, about = "-", what }) => [`${level} ${part} ${about}`, what]);
  return { isRead, found: Object.fromEntries(words), hints: findings.flatMap(({ hint }) => hint ?? []) };
}

test("a hub that never ran is checked by its file, in words, and nothing of it is made", async () => {
  const config = join(directory.path, "hub.yaml");
  await writeFile(config, stringify(raw({ calculated: {} })));
  const { code, stdout } = await new HeadgateProcess(["check", "-c", config]).ended();
  expect(code).toBe(0);
  expect(stdout).toMatch(/^ok +store +\S+hub\.sqlite does not exist yet; the hub makes it when it starts$/m);
  expect(stdout).toMatch(/^ok +hub +sign-in +the configuration has 1 account, 1 client, 1 user$/m);
  expect(stdout).toMatch(/^ok +hub +listen +127\.0\.0\.1:0 is available$/m);
  expect(stdout).toMatch(/^ok +hub +R scripts +the engine webr runs R scripts$/m);
  expect(stdout).toMatch(/^ok +stored files +\S+hub\.sqlite\.files can be written$/m);
  for (const made of ["hub.sqlite", "hub.sqlite.lock", "hub.sqlite.files"])
    expect(existsSync(join(directory.path, made)), made).toBe(false);
});

test("a hub that runs is found, and its store is read", async () => {
  const hub = await startHub(hubOptions.parse(raw()), { log });
  try {
    const { found } = await probed({ listen: new URL(hub.url).host });
    expect(found).toMatchObject({
      "ok hub listen": expect.stringContaining("a hub answers at 127.0.0.1:"),
      "ok store -": expect.stringContaining("can be read, and has 1 account"),
    });
  } finally {
    await hub.close();
  }
});

test("a hub beyond this machine is warned of where neither TLS nor a proxy is declared", async () => {
  const open = "0.0.0.0:0";
  const warned = async (more: object) => (await probed(more)).found["warning hub encryption"];
  expect(await warned({})).toBeUndefined();
  expect(await warned({ listen: open })).toMatch(
    /^the hub listens on 0\.0\.0\.0:0 beyond this machine, by plain HTTP: /,
  );
  expect(await warned({ listen: open, publicUrl: "http://hub.example.com" })).toMatch(/by plain HTTP/);
  expect(await warned({ listen: open, publicUrl: "https://hub.example.com" })).toBeUndefined();
  expect(await warned({ listen: open, trustProxy: ["10.0.0.4"] })).toBeUndefined();
  expect(await warned({ transfer: { ftp: { listen: open } } })).toMatch(/^FTP listens on 0\.0\.0\.0:0 .* without TLS/);
});

test("a paused subscription gives a warning that says how to resume it", async () => {
  const store = await openStore(hubOptions.parse(raw()).store);
  const { identity, subscriptions, eventDeliveries, groups } = store;
  try {
    await identity.putAccount({ id: 1, name: "First" });
    const url = "https://receiver.example/";
    const fields = { types: ["structure.changed" as const], filter: {}, channel: "webhook" as const, batch: 1 };
    const edit = { actor: CONFIGURATION, atMs: 0 };
    for (const name of ["Orders", "Healthy"])
      await subscriptions.create(1, { ...fields, name, url, secret: "x".repeat(16), active: true }, edit, 10);
    await groups.create(1, { name: "G" }, 10);
    const busy = { hosts: [], accounts: [] };
    const taken = await eventDeliveries.take("n", 1, 2, busy);
    expect(taken?.name).toBe("Orders");
    const attempt = { failure: "the receiver answered 404", nowMs: 1_000, nextMs: 2_000, isPaused: true };
    await eventDeliveries.failed({ id: taken?.id ?? 0, by: "n" }, attempt);
    const { found, hints } = await probed();
    const words = "(Orders) of account 1 is paused since 1970-01-01T00:00:01.000Z: the receiver answered 404";
    expect(found["warning store subscriptions"]).toBe(`the subscription 1 ${words}`);
    expect(hints).toContainEqual(expect.stringContaining("POST /events/subscriptions/1/resume"));
  } finally {
    await store.close();
  }
});

test("an address that another program took gives a warning, and one that is not here fails", async () => {
  const other = createServer((_request, answer) => answer.writeHead(404, { connection: "close" }).end("no hub"));
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  const listen = `127.0.0.1:${(other.address() as AddressInfo).port}`;
  try {
    const { found } = await probed({ listen, metrics: { listen: "127.0.0.1:0" } });
    expect(found).toMatchObject({
      "warning hub listen": `the port of ${listen} is taken`,
      "ok hub metrics": "127.0.0.1:0 is available",
    });
  } finally {
    other.closeAllConnections();
    await new Promise((resolve) => other.close(resolve));
  }
  expect((await probed({ listen: "192.0.2.1:8070" })).found).toHaveProperty("failed hub listen");
});

test("a user of an unknown account, a repeated client, and nobody to sign in are told", async () => {
  const users = [{ username: "u", password: "a-long-password", accounts: [7] }];
  expect((await probed({ users })).found).toMatchObject({
    "failed hub sign-in": expect.stringContaining("u enters the account 7, which does not exist"),
  });
  const client = raw().clients[0];
  expect((await probed({ clients: [client, client] })).found).toMatchObject({
    "failed hub sign-in": expect.stringContaining("clients: client occurs twice"),
  });
  expect((await probed({ users: [] })).found).toMatchObject({
    "warning hub sign-in": "the configuration has 1 account, 1 client, no users",
  });
});

test("a provider of single sign-on is asked for its discovery, and its grants must name accounts", async () => {
  const provider = await startProvider([]);
  const by = (more: object = {}) => {
    const own = { name: "company", label: "Company", issuer: provider.issuer, clientId: "hub", ...more };
    return { publicUrl: "https://hub.example.org/", signIn: { oidc: [own] } };
  };
  const redirect = "https://hub.example.org/sign-in/oidc/company/callback";
  expect((await probed(by())).found).toMatchObject({
    "ok hub sign-in by company": `${provider.issuer} answers; the redirect URI to register there is ${redirect}`,
  });
  expect((await probed({ ...by(), publicUrl: undefined })).found).toMatchObject({
    "warning hub sign-in by company": expect.stringContaining("https://<the hub>/sign-in/oidc/company/callback"),
  });
  const unknown = by({ grants: [{ accounts: [1, 9] }] });
  expect((await probed(unknown)).found).toMatchObject({
    "failed hub sign-in": expect.stringContaining("company grants the account 9, which does not exist"),
  });
  await expect(startHub(hubOptions.parse(raw(unknown)), { log })).rejects.toThrow("grants the account 9");
  await provider.stop();
  const { found, hints } = await probed(by());
  expect(found).toMatchObject({
    "failed hub sign-in by company": expect.stringMatching(/does not answer.*fetch failed/),
  });
  expect(hints.join()).toContain("Check `issuer`");
});

test("a store and a place of files that cannot be used fail, with what to do", async () => {
  const file = join(directory.path, "file");
  await writeFile(file, "");
  const below = await probed({
    store: { kind: "sqlite", path: join(file, "hub.sqlite") },
    files: { path: join(file, "files") },
  });
  expect(below).toMatchObject({
    isRead: false,
    found: {
      "failed store -": expect.stringContaining("cannot be written"),
      "failed stored files -": expect.stringContaining("cannot be written"),
    },
    hints: [expect.stringContaining("`store.path`"), expect.stringContaining("`files`")],
  });
  const far = await probed({ store: { kind: "postgres", url: "postgres://hub:hub@127.0.0.1:9/hub" } });
  expect(far).toMatchObject({
    isRead: false,
    found: { "failed store -": expect.any(String), "warning stored files -": "the hub takes no files" },
    hints: [expect.any(String), expect.stringContaining("files.path")],
  });
});
