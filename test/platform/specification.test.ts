/** Rules of the specification about files that the hub processes itself. */
import { afterAll, beforeAll, expect } from "vitest";
import { rule } from "../hub/specification/rule.ts";
import { sftpSender } from "../hub/transfer/sender.ts";
import { workbook } from "./contents.ts";
import { type PlatformRig, standardCsv, startRig } from "./rig.ts";

const DATE = "2026-03-01T00:00:00Z";

let rig: PlatformRig;
beforeAll(async () => {
  rig = await startRig({ transfer: { sftp: { listen: "127.0.0.1:0" } } });
});
afterAll(() => rig.close());

/** The values of a file with one reading or several for one meter. */
async function valuesFrom(name: string, content: string | Uint8Array<ArrayBuffer>, variableId: number) {
  await rig.became(await rig.store(name, content), "stored");
  return Object.values(await rig.values(variableId));
}

async function sendBySftp(name: string, content: string): Promise<number> {
  const sender = await sftpSender({ transfer: () => rig.platform().transfer });
  await sender.put(`/${name}`, content);
  sender.end();
  return (await rig.get("/storage", { FileName: name }))[0].id;
}

const ofType = (fileType: string, beginning: string, more: object = {}) => {
  const fileNamePatternMatches = [{ filterType: "StartsWith", value: beginning }];
  return rig.post("/fileTrigger", { fileType, ingestionType: "UploadInStorage", fileNamePatternMatches, ...more });
};

rule("silent.file", async () => {
  const variableId = await rig.variable("N-1");
  await rig.trigger("other_", "standard");
  const id = await rig.store("nobody_1.csv", standardCsv("N-1", DATE, 1));
  expect((await rig.became(id, "unclaimed"))["reason"]).toContain("no trigger claims it");
  expect(await rig.values(variableId)).toEqual({});
});
rule("trigger.missing-mapper", async () => {
  const triggerId = await rig.trigger("missing_", "no-such-mapper");
  expect(await rig.get(`/fileTrigger/${triggerId}`)).toMatchObject({ mapping: "no-such-mapper", mappingKnown: false });
  const id = await rig.store("missing_1.csv", "x");
  const file = await rig.became(id, "quarantined");
  expect(file).toMatchObject({ triggerId, reason: expect.stringContaining("no-such-mapper") });
});
rule("versions.standard-file", async () => {
  const variableId = await rig.variable("T-1");
  await rig.trigger("versions_", "standard");
  const lines = [
    "date,value,source_serial_number,mapping_config,version,tags",
    `${DATE},1,T-1,kWh,,`,
    `2026-03-02T00:00:00Z,2,T-1,kWh,Simulation,operator:M. Dupont|note:checked`,
  ];
  await rig.became(await rig.store("versions_1.csv", lines.join("\n")), "stored");
  const rows = await rig.get("/data", { VariableIds: variableId, AllVersions: true });
  expect(rows).toMatchObject([
    { rawValue: 1 },
    { rawValue: 2, version: "Simulation", tags: { operator: "M. Dupont", note: "checked" } },
  ]);
});
rule("versions.standard-header", async () => {
  const variableId = await rig.variable("H-1");
  await rig.trigger("header_", "standard");
  const content = `Remark,VALUE,Date,Source_SerialNumber,mapping_CONFIG\nx,-3.5,${DATE},H-1,kWh\n`;
  expect(await valuesFrom("header_1.csv", content, variableId)).toEqual([-3.5]);
});
rule("versions.standard-columns", async () => {
  const variableId = await rig.variable("Q-1");
  await rig.trigger("columns_", "standard");
  const lines = [
    ["date,source_serial_number,mapping_config", `${DATE},Q-1,kWh`],
    ["value,source_serial_number,mapping_config", "1,Q-1,kWh"],
    ["date,value", `${DATE},1`],
    ["date,value,source_serial_number", `${DATE},1,Q-1`],
  ];
  for (const [nth, rows] of lines.entries())
    await rig.became(await rig.store(`columns_${nth}.csv`, rows.join("\n")), "quarantined");
  const content = `date,value,variable_id\n${DATE},9,${variableId}\n`;
  expect(await valuesFrom("columns_whole.csv", content, variableId)).toEqual([9]);
});
rule("file.any-way", async () => {
  const ways = ["UploadInStorage", "SendViaFtp", "SendViaHttp"];
  const ids: number[] = [];
  for (const ingestionType of ways) {
    const content = standardCsv(ingestionType, DATE, 2.5);
    ids.push(await rig.variable(ingestionType));
    const triggerId = await rig.trigger("way_", "standard", { ingestionType });
    const { token } = await rig.get(`/fileTrigger/${triggerId}`);
    const query = { filename: "way_pushed.csv" };
    const send = {
      UploadInStorage: () => rig.store("way_1.csv", content),
      SendViaFtp: () => sendBySftp("way_sent.csv", content),
      SendViaHttp: async () => (await rig.ok("POST", `/push/api/generic/${token}`, { raw: content, query })).id,
    }[ingestionType];
    expect(await rig.became(await send?.(), "stored")).toMatchObject({ triggerId });
  }
  for (const id of ids) expect(await rig.values(id)).toEqual({ "2026-03-01T01:00:00+01:00": 2.5 });
});
rule("trigger.ingestion-type", async () => {
  await rig.variable("I-1");
  await rig.trigger("came_", "standard", { ingestionType: "SendViaFtp" });
  const content = standardCsv("I-1", DATE, 1);
  await rig.became(await rig.store("came_1.csv", content), "unclaimed");
  await rig.became(await sendBySftp("came_2.csv", content), "stored");
});
rule("trigger.added", async () => {
  await rig.variable("A-1");
  const before = await rig.store("added_1.csv", standardCsv("A-1", DATE, 1));
  await rig.became(before, "unclaimed");
  await rig.trigger("added_", "standard");
  await rig.became(await rig.store("added_2.csv", standardCsv("A-1", DATE, 2)), "stored");
  expect(await rig.get(`/storage/${before}`)).toMatchObject({ state: "unclaimed" });
});
rule("trigger.combination", async () => {
  const patterns = [
    { filterType: "StartsWith", value: "both_" },
    { filterType: "Contains", value: "day" },
  ];
  const body = { fileNamePatternMatches: patterns, fileTriggerCombination: "And" };
  const id = await rig.trigger("", "standard", body);
  const claimant = async (Filename: string) =>
    (await rig.ok("POST", "/fileTrigger/test", { query: { Filename } })).claimedBy;
  expect(await Promise.all(["both_day", "both_", "day", "other"].map(claimant))).toEqual([id, null, null, null]);
  await rig.ok("PUT", "/fileTrigger", { body: { id, fileTriggerCombination: "Or" } });
  expect(await Promise.all(["both_day", "both_", "day", "other"].map(claimant))).toEqual([id, id, id, null]);
  await rig.ok("DELETE", "/fileTrigger", { query: { ids: id } });
});
rule("trigger.states", async () => {
  await rig.variable("E-1");
  const id = await rig.trigger("states_", "standard");
  const changed = (body: object) => rig.ok("PUT", "/fileTrigger", { body: { id, ...body } });
  const expectFile = async (nth: number, state: string) =>
    rig.became(await rig.store(`states_${nth}.csv`, standardCsv("E-1", DATE, nth)), state);
  await expectFile(1, "stored");
  expect(await changed({ state: "Inactive" })).toMatchObject({ state: "Inactive" });
  await expectFile(2, "unclaimed");
  expect(await changed({ state: "Active" })).toMatchObject({ state: "Active" });
  expect(await changed({ name: "Renamed" })).toMatchObject({ state: "Updated" });
  await expectFile(3, "stored");
  await rig.ok("DELETE", "/fileTrigger", { query: { ids: id } });
  expect(await rig.get(`/fileTrigger/${id}`)).toMatchObject({ state: "Deleted" });
  await expectFile(4, "unclaimed");
});
rule("trigger.metadata", async () => {
  const variableId = await rig.variable("D-1");
  await rig.trigger("decimal_", "standard", { metadata: { decimal: ",", delimiter: ";" } });
  const content = `date;value;source_serial_number;mapping_config\n${DATE};1,5;D-1;kWh\n`;
  expect(await valuesFrom("decimal_1.csv", content, variableId)).toEqual([1.5]);
});
rule("trigger.standard", async () => {
  const variableId = await rig.variable("S-1");
  await ofType("OpisenseStandard", "standard_");
  expect(await valuesFrom("standard_1.csv", standardCsv("S-1", DATE, 4), variableId)).toEqual([4]);
});
rule("trigger.custom-format", async () => {
  const variableId = await rig.variable("C-1");
  const values = [{ column: "energy", target: { sourceSerialNumber: "{meter}", mappingConfig: "kWh" } }];
  const date = { column: "when", format: "dd.MM.yyyy HH:mm" };
  const metadata = { delimiter: ";", timeZone: "UTC", date, values };
  await ofType("CustomFormat", "vendor_", { mapping: "delimited", metadata });
  const content = "when;meter;energy\n01.03.2026 00:00;C-1;7\n01.03.2026 00:15;C-1;8\n";
  expect(await valuesFrom("vendor_1.csv", content, variableId)).toEqual([7, 8]);
});
rule("trigger.master-data", async () => {
  await ofType("OpisenseMasterData", "structure_");
  const header = "site_name,site_type,site_time_zone,site_city";
  const rows = async (name: string, row: string) => {
    const { reason } = await rig.became(await rig.store(name, `${header}\n${row}\n`), "stored");
    return String(reason).replace(/ \(.*/, "");
  };
  const site = async () => (await rig.get("/sites", { CustomFilter: "Name = 'Works'" }))[0];
  expect(await rows("structure_1.csv", "Works,Office,Europe/Brussels,Ghent")).toBe(
    "rows: 1 created, 0 changed, 0 unchanged",
  );
  expect(await site()).toMatchObject({ name: "Works", city: "Ghent", timeZoneId: "Europe/Brussels" });
  const { id } = await site();
  expect(await rows("structure_2.csv", "Works,,,Liège")).toBe("rows: 0 created, 1 changed, 0 unchanged");
  expect(await site()).toMatchObject({ id, city: "Liège", timeZoneId: "Europe/Brussels" });
  expect(await rows("structure_3.csv", "Works,,,Liège")).toBe("rows: 0 created, 0 changed, 1 unchanged");
});
rule("trigger.what-if", async () => {
  const content = "site_name,site_type,site_time_zone\nTried,Office,Europe/Brussels\n";
  const id = await rig.store("tried.csv", content);
  const report = await rig.ok("POST", `/storage/${id}/dryRun`);
  expect(report).toMatchObject({ dryRun: true, applied: false, rows: { created: 1, changed: 0, refused: 0 } });
  expect(await rig.get("/sites", { CustomFilter: "Name = 'Tried'" })).toEqual([]);
});
rule("trigger.manual-load", async () => {
  const variableId = await rig.variable("M-1");
  await ofType("OpisenseManualLoad", "manual_", { metadata: { timeZone: "Europe/Brussels", mappingConfig: "kWh" } });
  const rows = [
    ["Serial number", "Reading date", "Index"],
    ["M-1", "2026-03-01", 1200.5],
    ["M-1", "2026-04-01", 1310],
  ];
  expect(await valuesFrom("manual_1.xlsx", await workbook(rows), variableId)).toEqual([1200.5, 1310]);
});
rule("trigger.index-is", async () => {
  const variableId = await rig.variable("L-1");
  await ofType("IndexIs", "91_", { metadata: { timeZone: "+01:00" } });
  const content = "serial number;mapping config;date;index\nL-1;kWh;2026-07-01 00:15;77.5\n";
  expect(await valuesFrom("91_1.csv", content, variableId)).toEqual([77.5]);
  // Times are those of winter all year.
  expect(Object.keys(await rig.values(variableId))).toEqual(["2026-07-01T01:15:00+02:00"]);
});
