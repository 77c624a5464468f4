/** `headgate check` as a real process, beside a gateway that runs with the same configuration. */
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { stringify } from "yaml";
import { type Finding, findingLines } from "#app/cli/check.ts";
import { testCertificate, testKey } from "../drops/certificate.ts";
import { GUID, IntakeRig, intakeSettings, pushBody, upload } from "../drops/intake-rig.ts";
import { HeadgateProcess } from "../e2e/processes.ts";
import { GatewayRig } from "../runs/gateway-rig.ts";

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function check(config: string, ...more: string[]) {
  const { code, stdout, stderr } = await new HeadgateProcess(["check", "-c", config, ...more]).ended();
  return { code, stdout, stderr };
}

async function findings(config: string): Promise<readonly Finding[]> {
  return JSON.parse((await check(config, "--json")).stdout);
}

test("reports the files at an intake and a folder with their future, and does not disturb the gateway", async () => {
  const rig = await IntakeRig.start();
  closing.push(() => rig.close());
  const tls = { key: testKey, cert: testCertificate };
  const intake = { finish: { delivered: "leave" } };
  await rig.post("/api/data?operationId=one", pushBody(1, 1));
  await rig.post(`/api/generic/${GUID}`, "a,b\n");
  await rig.post("/storage?Filename=a.csv", upload("a.csv", "x"));
  await rig.post("/storage?Filename=a.txt", upload("a.txt", "x"));
  const before = await rig.bodies();

  const folder = join(rig.folder, "meters");
  await mkdir(folder);
  for (const name of ["a.zip", "b.csv", "c.csv"]) await writeFile(join(folder, name), "x");
  const settings = intakeSettings(rig.folder, rig.hub, {}, { ...intake, tls });
  const drops = settings["drops"] as readonly object[];
  const local = { kind: "local", name: "meters", path: folder, initial: "skip" };
  const config = join(rig.folder, "gateway.yaml");
  await writeFile(config, stringify({ ...settings, drops: [...drops, local] }));
  const found = await findings(config);

  const of = (part: string) =>
    Object.fromEntries(found.filter((one) => one.part === part).map(({ about, what }) => [about, what]));
  expect(of("drop intake")).toMatchObject({
    address: "127.0.0.1:0 is available",
    certificate: expect.stringMatching(/^localhost, issued by localhost, until 2126-10-28 \(\d+ days left\)$/),
    users: expect.stringContaining("device (push and storage to hub), local (push and storage to hub)"),
    listing: "4 received bodies wait to be delivered",
    triggers: expect.stringMatching(
      /^(?=.*1 in the standard format, which needs no trigger)(?=.*1 would match trigger generic)(?=.*1 would match trigger uploads)(?=.*1 no trigger claims)/,
    ),
  });
  expect(of("drop meters")).toMatchObject({
    folder: expect.stringMatching(/GB free$/),
    listing: expect.stringMatching(/^3 files listed in /),
    rights: "files can be renamed and deleted",
    triggers: expect.stringMatching(/^(?=.*1 would be opened, entry by entry)(?=.*2 no trigger claims)/),
    initial: expect.stringContaining("processes 0 of 3 files"),
  });
  expect(await rig.bodies()).toEqual(before);
  expect((await readdir(folder)).toSorted()).toEqual(["a.zip", "b.csv", "c.csv"]);
});

test("fails when one part fails, and prints one line per finding to a pipe, with its hint below", async () => {
  const rig = await IntakeRig.start();
  closing.push(() => rig.close());
  const config = join(rig.folder, "gateway.yaml");
  const settings = intakeSettings(rig.folder, rig.hub);
  const gone = { kind: "local", name: "gone", path: join(rig.folder, "none") };
  await writeFile(config, stringify({ ...settings, drops: [...(settings["drops"] as object[]), gone] }));
  const { code, stdout } = await check(config);
  expect(code).toBe(1);
  const lines = stdout.trimEnd().split("\n");
  expect(
    lines.filter((line) => /^failed {3}drop gone +listing +the folder .* cannot be opened/.test(line)),
  ).toHaveLength(1);
  const starts = lines.filter((line) => !line.startsWith(" ")).map((line) => line.slice(0, 9));
  expect(new Set(starts)).toEqual(new Set(["ok       ", "failed   "]));
});

test("findings fit a terminal of 100 columns, and longer words stay whole", () => {
  const fingerprint = `SHA256:${"A".repeat(43)}`;
  const finding: Finding = {
    part: "drop meters",
    level: "warning",
    about: "host key",
    what: `${"word ".repeat(40)}${fingerprint}`,
    hint: `Look at ${"/very/long".repeat(12)} first.`,
  };
  const lines = findingLines(finding, { partWidth: 0, width: 100 });
  expect(lines[0]).toMatch(/^ {2}warning {2}host key {5}word/);
  for (const line of lines.slice(1)) expect(line).toMatch(/^ {24}\S/);
  expect(lines.filter((line) => line.length > 100)).toHaveLength(1);
  expect(lines.join("\n")).toContain(fingerprint);
  expect(lines.map((line) => line.trim()).join(" ")).toContain(`→ ${finding.hint}`);
  const piped = findingLines(finding, { partWidth: 12, width: Number.POSITIVE_INFINITY });
  expect(piped).toEqual([`warning  drop meters   host key     ${finding.what}`, `${" ".repeat(36)}→ ${finding.hint}`]);
});

test("requests zones, units and types of provision templates before a new meter needs them", async () => {
  const rig = await GatewayRig.start();
  closing.push(() => rig.close());
  const config = join(rig.folder, "gateway.yaml");
  const templates = {
    good: { site: { name: "A", typeId: 10, timeZoneId: "Europe/Brussels" }, variable: { unit: "kWh" } },
    wrong: {
      site: { name: "A", typeId: 99, timeZoneId: "Europe/Brusels" },
      source: { timeZoneId: "Romance Standard Time" },
      variable: { unit: "kwatthour" },
    },
  };
  const triggers = Object.entries(templates).map(([name, provision]) => ({
    name,
    fileNamePatternMatches: [{ filterType: "StartsWith", value: name }],
    mapper: "standard",
    provision,
  }));
  rig.configure({ triggers });
  const found = (await findings(config)).filter(({ what }) => /provision/.test(what));
  expect(found.map(({ part, level, what }) => `${part} ${level} ${what}`)).toEqual([
    "trigger good ok the service hub knows its provision template",
    "trigger wrong failed provision.site.timeZoneId: Europe/Brusels is neither an IANA nor a Windows time zone",
    "trigger wrong failed provision.variable.unit: the service has no unit kwatthour",
    "trigger wrong failed provision.site.typeId: the service lists no 99 at GET /sitetypes",
  ]);
  expect((await check(config)).code).toBe(1);
});
