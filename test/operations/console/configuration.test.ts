/** The configuration in force, what changed it, and the validation of a text, through a running daemon. */
import { readFileSync } from "node:fs";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createLog } from "#core/log.ts";
import { masked } from "#core/secrets.ts";
import { loadGatewayConfig } from "#gateway/config.ts";
import { Validator } from "#gateway/console/configuration.ts";
import { type Gateway, startGateway } from "#gateway/gateway.ts";
import { configurationEndpoints as endpoints } from "#gateway/operations/api/configuration.ts";
import { Reloading } from "#gateway/reload.ts";
import { drop, GatewayRig, until } from "../../runs/gateway-rig.ts";
import { call, refusal } from "./calls.ts";

const SECRET = "a literal secret of a sender";
let rig: GatewayRig;
let daemon: Reloading<Gateway>;

const sections = (every: string) => ({
  log: { level: "silent" },
  drops: [
    drop("in", { every, finish: { delivered: "delete" } }),
    {
      ...{ name: "web", kind: "http", listen: "127.0.0.1:0" },
      users: [
        { username: "device", password: SECRET },
        { username: "other", password: `\${file:${rig.folder}/password}` },
      ],
    },
  ],
  operations: { listen: "127.0.0.1:0", reload: { every: "50ms" } },
});

beforeEach(async () => {
  rig = await GatewayRig.start();
  rig.put("password", "the password of another sender\n");
  rig.configure(sections("100ms"));
  const log = createLog("silent");
  daemon = await Reloading.start<Gateway>({
    load: (files) => loadGatewayConfig(rig.config, files),
    start: (config, configuration) => startGateway(config, { log, configuration, configFile: rig.config }),
    log,
  });
});
afterEach(async () => {
  await daemon.stop();
  await rig.close();
});

const shown = () => call(daemon.gateway, endpoints.configuration);

it("shows each setting with its source, and no secret", async () => {
  const { file, settings, reloads } = await shown();
  expect(file).toBe(rig.config);
  expect(reloads).toEqual([]);
  const at = (path: string) => settings.find((one) => one.path === path);
  const plain = { isHidden: false };
  expect(at("drops[in].every")).toMatchObject({ value: 100, written: "100ms", source: "given", ...plain });
  expect(at("drops[in].recursive")).toMatchObject({ written: null, source: "default", ...plain });
  expect(at("drops[in].finish.delivered.action")).toMatchObject({
    value: "delete",
    written: "delete",
    source: "given",
  });
  // A default is shown in the unit that a file would have.
  expect(at("spool.keepInputs.age")).toMatchObject({ value: 2_592_000_000, quantity: "30d", written: null });
  expect(at("push.batch.bytes")).toMatchObject({ value: 4_000_000, quantity: "4MB" });
  expect(at("push.batch.points")).toMatchObject({ quantity: null });
  expect(at("push.batch.points")).toMatchObject({ value: expect.any(Number), source: "default" });
  expect(at("services[hub].credentials.password")).toMatchObject({ value: null, written: null, isHidden: true });
  const passwords = settings.filter(({ path }) => /^drops\[web\]\.users.*\.password$/.test(path));
  expect(passwords.map(({ value, written }) => [value, written])).toEqual([
    [null, null],
    [null, `\${file:${rig.folder}/password}`],
  ]);
  expect(JSON.stringify(settings)).not.toContain("password of another");
  expect(JSON.stringify(settings)).not.toContain(SECRET);
});

it("lists what each reload changed, and why one was refused", async () => {
  rig.configure(sections("200ms"));
  await until("the change is in force", async () => (await shown()).reloads.length === 1);
  rig.configure({ ...sections("200ms"), drops: [] });
  await until("the change is refused", async () => (await shown()).reloads.length === 2);
  const { reloads, settings } = await shown();
  expect(reloads).toMatchObject([
    { result: "refused", changed: [], reason: expect.stringContaining("drops") },
    { result: "in force", changed: ["drops[in].every"], changedCount: 1, reason: null },
  ]);
  expect(settings.find(({ path }) => path === "drops[in].every")?.value).toBe(200);
});

it("validates a text, with the lines of its faults, and reads nothing that it names", async () => {
  const validate = (text: string) => call(daemon.gateway, endpoints.validate, { body: { text } });
  const valid = readFileSync(rig.config, "utf8");
  expect(await validate(valid)).toMatchObject({ isValid: true });

  const unread = valid
    .replace(SECRET, "${file:/no/such/file}")
    .replace("every: 100ms", "every: ${env:NO_SUCH_VARIABLE}")
    .replace("password: password", "password: a pasted password");
  expect(unread.match(/NO_SUCH|no\/such|pasted/g)).toHaveLength(3);
  expect(await validate(unread)).toMatchObject({ isValid: true, findings: [] });
  expect(masked("a pasted password")).toBe("a pasted password");

  const wrong = await validate(valid.replace("every: 100ms", "evry: 100ms"));
  const line = valid.split("\n").findIndex((one) => one.includes("every: 100ms")) + 1;
  expect(wrong.findings).toEqual([
    { level: "failed", line, what: expect.stringContaining("did you mean every?"), hint: null },
  ]);
  const broken = await validate("drops: [\n");
  expect(broken).toMatchObject({ isValid: false, findings: [{ level: "failed", line: expect.any(Number) }] });
  const ninefold = (of: string) => `[${Array(9).fill(`*${of}`)}]`;
  const bomb = [
    "a: &a [x]",
    ...[..."bcdefghij"].map((key, at) => `${key}: &${key} ${ninefold("abcdefghi"[at] ?? "")}`),
  ];
  expect(await validate(bomb.join("\n"))).toMatchObject({ isValid: false });
  expect(await refusal(daemon.gateway, endpoints.validate, { body: { text: "x".repeat(200_001) } })).toMatchObject({
    status: 400,
  });
});

/** The parser compares each of so many keys with all others, which takes seconds. */
const slowText = Array.from({ length: 15_000 }, (_, at) => `k${at}: 1`).join("\n");

it("answers other requests while it validates a text that takes seconds, and shows the first faults", async () => {
  const ended: string[] = [];
  const validation = call(daemon.gateway, endpoints.validate, { body: { text: slowText } });
  const others = async () => {
    for (let nth = 0; nth < 3; nth += 1) await shown();
    ended.push("others");
  };
  const [{ isValid, findings }] = await Promise.all([
    validation.finally(() => void ended.push("validation")),
    others(),
  ]);
  expect(ended).toEqual(["others", "validation"]);
  expect(isValid).toBe(false);
  expect(findings).toHaveLength(201);
  expect(findings).toContainEqual({ level: "failed", line: 1, what: "unknown key k0", hint: null });
  expect(findings.at(-1)?.what).toMatch(/^\d+ more are not shown$/);
});

it("validates one text at a time for each person, and ends one that takes too long", async () => {
  const [one, other] = [0, 1].map(() => call(daemon.gateway, endpoints.validate, { body: { text: slowText } }));
  const results = await Promise.allSettled([one, other]);
  expect(results.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  expect(String(results.find((result) => result.status === "rejected")?.reason)).toContain("HG-OPS-010");

  const validator = new Validator(1);
  const never = new AbortController().signal;
  await expect(validator.validate(slowText, "ann", never)).rejects.toMatchObject({
    code: "HG-OPS-013",
    message: expect.stringContaining("more than 0.001 s"),
  });
  await validator.close();
});
