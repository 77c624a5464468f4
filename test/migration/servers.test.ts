/** A history that lies on a server, named by URL: its login comes from a drop of the configuration. */
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, it } from "vitest";
import { captureShown } from "../cli/shown.ts";
import { type OpenField, openFtp, openSftp } from "../drops/field.ts";
import { GatewayRig } from "../runs/gateway-rig.ts";
import { headgateHere } from "./migrate-command.ts";

const shown = captureShown();
let rig: GatewayRig;
beforeAll(async () => {
  rig = await GatewayRig.start();
});
afterAll(() => rig.close());

const SERVERS: readonly (readonly [string, OpenField])[] = [
  ["sftp", openSftp],
  ["ftp", openFtp("auto")],
];

it.each(SERVERS)("plans and processes files on a server by %s", async (kind, open) => {
  const id = await rig.variable(kind);
  const rows = (year: number) =>
    `variable_id,date,value\n${id},${year}-01-01T00:00:00Z,${year}\n${id},${year}-07-01T00:00:00Z,1\n`;
  const field = await open();
  try {
    await field.write("exports/2019.csv", rows(2019));
    await field.write("exports/old/2018.csv.gz", gzipSync(rows(2018)));
    await field.write("other/2017.csv", rows(2017));
    if (field.options.kind !== "sftp" && field.options.kind !== "ftp") throw new Error("it is no server");
    const { host, port, username, password } = field.options;
    const keys = field.options.kind === "sftp" ? { hostKeys: field.options.hostKeys } : {};
    rig.configure({
      drops: [{ kind, name: "server", host, port, username, password, ...keys, path: "elsewhere" }],
    });
    const order = ["migrate", `${kind}://${host}:${port}/exports/**`, "-m", "standard", "--json"];

    const planned = await headgateHere(rig, shown, ...order, "--dry-run");
    expect(planned.stderr).toBe("");
    expect(JSON.parse(planned.stdout)).toMatchObject({
      ...{ files: 2, points: 4, targets: 1, unfit: [], findings: [] },
      period: { from: "2018-01-01T00:00:00.000Z", to: "2019-07-01T00:00:00.000Z" },
    });
    const { stdout, stderr } = await headgateHere(rig, shown, ...order, "--verify");
    expect(JSON.parse(stdout), stderr).toMatchObject({
      points: { mapped: 4, accepted: 4 },
      verified: { points: 4, differences: [] },
    });
    expect(await rig.stored(id)).toMatchObject({ "2018-01-01": 2018, "2019-01-01": 2019 });

    const unknown = await headgateHere(rig, shown, "migrate", `${kind}://nobody.example/x/*`, "-m", "standard");
    expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining("HG-MIGR-001") });
  } finally {
    await field.close();
  }
});
