/** Drops over the operations API: state, check, host keys and files that a person puts there. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import ssh2 from "ssh2";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Gateway } from "#gateway/gateway.ts";
import { dropEndpoints as endpoints } from "#gateway/operations/api/drops.ts";
import { drop, GatewayRig, oneReading, trigger, until } from "../../runs/gateway-rig.ts";
import type { FieldSftp } from "../../support/field/sftp.ts";
import { call, refusal } from "./calls.ts";
import { changedServer } from "./changed-server.ts";

const user = { username: "meter", password: "open sesame" };
const params = { name: "field" };

let rig: GatewayRig;
let server: FieldSftp | null = null;

beforeEach(async () => {
  rig = await GatewayRig.start();
});
afterEach(async () => {
  await rig.close();
  await server?.close();
  server = null;
});

const putInto = (name: string, file: string, text: string) =>
  ({ params: { name }, query: { name: file }, body: Buffer.from(text) }) as const;

async function changed(more: Readonly<Record<string, unknown>> = {}) {
  const found = await changedServer(rig.folder, more);
  server = found.server;
  return found;
}

const refused = async (gateway: Gateway) => {
  await until("the key is refused", async () => (await call(gateway, endpoints.drops))[0]?.hostKey === "refused");
};

it("takes files again once a person approved the new host key of the server, and remembers it", async () => {
  const { options, root, present, pinned } = await changed();
  const variable = await rig.variable("M-1");
  writeFileSync(join(root, "a.csv"), oneReading(variable, 1));
  const sections = { drops: [{ ...options, every: "100ms", settle: { observations: 1 } }] };
  let gateway = await rig.open(sections);
  await refused(gateway);
  const [state] = await call(gateway, endpoints.drops);
  expect(state).toMatchObject({ address: `sftp://meter@127.0.0.1:${options.port}`, takesUploads: false });
  expect(state?.lastError).toMatchObject({ code: "HG-DROP-004", hint: expect.stringContaining(present) });

  const before = await call(gateway, endpoints.hostKey, { params });
  expect(before.known).toEqual([{ type: null, fingerprint: pinned, trustedBy: "pinned in hostKeys (1 of 1)" }]);
  const offered = { type: "ssh-ed25519", fingerprint: present, isTrusted: false, isRevoked: false };
  expect(before.offered).toEqual(offered);

  const other = { params, body: { fingerprint: pinned } };
  expect(await refusal(gateway, endpoints.approveHostKey, other)).toMatchObject({ status: 409, code: "HG-DROP-004" });
  expect((await call(gateway, endpoints.hostKey, { params })).offered.isTrusted).toBe(false);

  const approved = await call(gateway, endpoints.approveHostKey, { params, body: { fingerprint: present } });
  expect(approved.offered.isTrusted).toBe(true);
  const file = join(rig.folder, "state/spool/known_hosts");
  expect(approved.known[1]).toEqual({
    type: "ssh-ed25519",
    fingerprint: present,
    trustedBy: `approved in line 2 of ${file}`,
  });
  expect(readFileSync(file, "utf8")).toMatch(/^# approved by "command line" at \S+, for the drop "field": SHA256:/);
  await until("the file is delivered", async () => (await rig.stored(variable))["2026-03-01"] === 1);

  gateway = await rig.open(sections);
  await until("the drop is polled", async () => (await call(gateway, endpoints.drops))[0]?.hostKey === "trusted");
});

it("approves no key that the drop's file revokes", async () => {
  const { options, present } = await changed();
  const publicKey = ssh2.utils.parseKey(server?.hostKey ?? "");
  if (publicKey instanceof Error) throw publicKey;
  const base64 = publicKey.getPublicSSH().toString("base64");
  rig.put("hosts", `@revoked [127.0.0.1]:${options.port} ssh-ed25519 ${base64}\n`);
  const gateway = await rig.open({ drops: [{ ...options, knownHosts: join(rig.folder, "hosts") }] });
  await refused(gateway);
  expect((await call(gateway, endpoints.hostKey, { params })).offered).toMatchObject({ isRevoked: true });
  const given = { params, body: { fingerprint: present } };
  const answer = await refusal(gateway, endpoints.approveHostKey, given);
  expect(answer).toMatchObject({ status: 409, detail: expect.stringContaining("revokes") });
  expect((await call(gateway, endpoints.drops))[0]?.hostKey).toBe("refused");
});

it("checks a drop beside its polls, with the triggers that would claim its files", async () => {
  rig.put("in/readings.csv", "variable_id,date,value\n");
  rig.put("in/notes.txt", "none");
  const gateway = await rig.open({ drops: [drop("in"), drop("gone")] });
  const findings = await call(gateway, endpoints.check, { params: { name: "in" } });
  expect(findings.filter(({ level }) => level === "failed")).toEqual([]);
  expect(findings.find(({ about }) => about === "listing")?.what).toContain("2 files listed");
  const triggers = findings.find(({ about }) => about === "triggers")?.what;
  expect(triggers).toContain("1 would match trigger standard");
  expect(triggers).toContain("1 no trigger claims");
  const failed = await call(gateway, endpoints.check, { params: { name: "gone" } });
  expect(failed.map(({ level }) => level)).toContain("failed");
  expect(await refusal(gateway, endpoints.check, { params: { name: "none" } })).toMatchObject({ status: 404 });
});

it("puts a file into a local drop whole, and never in the place of another", async () => {
  const variable = await rig.variable("M-1");
  const gateway = await rig.open({
    drops: [
      drop("in", { exclude: ["*.bak"], maxFileSize: "1KB", finish: { delivered: "leave" } }),
      { name: "web", kind: "http", listen: "127.0.0.1:0", users: [user] },
    ],
  });
  const put = (name: string, text: string) => putInto("in", name, text);
  const text = oneReading(variable, 7);
  expect(await call(gateway, endpoints.addFile, put("new.csv", text))).toEqual({
    path: "new.csv",
    bytes: text.length,
  });
  await until("the file is delivered", async () => (await rig.stored(variable))["2026-03-01"] === 7);
  const [state] = await call(gateway, endpoints.drops);
  expect(state).toMatchObject({ drop: "in", takesUploads: true, hostKey: "none", lastFile: { path: "new.csv" } });

  for (const [name, words] of [
    ["new.csv", "there is a file of this name"],
    ["../out.csv", "not a plain name"],
    ["a\nb.csv", "not a plain name"],
    ["a.bak", "patterns of the drop"],
    ["a.csv.part", "still being written"],
  ] as const) {
    const answer = await refusal(gateway, endpoints.addFile, put(name, text));
    expect(answer).toMatchObject({ status: 409, code: "HG-OPS-012", detail: expect.stringContaining(words) });
  }
  const large = await refusal(gateway, endpoints.addFile, put("large.csv", "x".repeat(1_001)));
  expect(large).toMatchObject({ status: 409, code: "HG-OPS-012", detail: expect.stringContaining("1001 bytes") });
  expect(readFileSync(join(rig.folder, "in/new.csv"), "utf8")).toBe(text);
  expect(readdirSync(join(rig.folder, "in"))).toEqual(["new.csv"]);
  expect(readdirSync(rig.folder)).not.toContain("out.csv");
});

it("puts a file into an HTTP intake as an upload, and into no drop on a server", async () => {
  const variable = await rig.variable("M-1");
  const { options } = await changed();
  const web = { name: "web", kind: "http", listen: "127.0.0.1:0", users: [user], limits: { body: "1KB" } };
  const gateway = await rig.open({
    drops: [{ ...web, every: "100ms" }, options],
    triggers: [trigger("uploads", { ingestionType: "UploadInStorage" })],
  });
  const added = await call(gateway, endpoints.addFile, putInto("web", "new.csv", oneReading(variable, 7)));
  expect(added.path).toMatch(/^storage\/\d+\/new\.csv$/);
  await until("the file is delivered", async () => (await rig.stored(variable))["2026-03-01"] === 7);
  const [run] = await gateway.ledger.recentRuns(1);
  expect(run?.binding.sender).toContain("command line (console)");
  for (const given of [
    putInto("web", "large.csv", "x".repeat(1_001)),
    putInto("web", "../out.csv", "x"),
    putInto("field", "a.csv", "x"),
  ])
    expect(await refusal(gateway, endpoints.addFile, given)).toMatchObject({ status: 409, code: "HG-OPS-012" });
  expect(await gateway.ledger.recentRuns(9)).toHaveLength(1);
});
