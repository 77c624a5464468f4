/** Files whose dates have no zone: that of the source counts, where no setting names another. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type PlatformRig, SECOND, standardCsv, startRig } from "./rig.ts";

let rig: PlatformRig;
beforeAll(async () => {
  rig = await startRig();
});
afterAll(() => rig.close());

const NEW_YORK = "America/New_York";

/** The zone of its site is Europe/Paris. */
async function source(serial: string, timeZoneId?: string): Promise<{ variableId: number; sourceId: number }> {
  const variableId = await rig.variable(serial);
  const [{ id: sourceId }] = await rig.get("/sources", { serialNumber: serial });
  if (timeZoneId !== undefined) await rig.ok("PATCH", `/sources/${sourceId}`, { body: { timeZoneId } });
  return { variableId, sourceId };
}

async function instants(variableId: number): Promise<readonly string[]> {
  const query = { VariableIds: variableId, DisplayLevel: "ValueVariableDate", TimeZoneId: "UTC" };
  const rows: readonly { date: string }[] = await rig.get("/data", query);
  return rows.map(({ date }) => new Date(date).toISOString().slice(0, 16));
}

async function pushTo(mapping: string, metadata: object = {}): Promise<(raw: string) => Promise<number>> {
  const triggerId = await rig.post("/fileTrigger", { name: mapping, ingestionType: "SendViaHttp", mapping, metadata });
  const { token } = await rig.get(`/fileTrigger/${triggerId}`);
  return async (raw) => ((await rig.ok("POST", `/push/api/generic/${token}`, { raw })) as { id: number }).id;
}

async function zonesOf(fileId: number): Promise<string | null | undefined> {
  const { run } = await rig.get(`/storage/${fileId}`);
  return (await rig.platform().gateway?.ledger.run(run))?.binding.zones;
}

const HEADER = "date,value,source_serial_number,mapping_config\n";
const rowsOf = (date: string, ...serials: string[]) => serials.map((one) => `${date},1,${one},kWh\n`).join("");

test("a pushed standard file is read in the zones of its sources, as they are when it is claimed", async () => {
  const paris = await source("P-1");
  const york = await source("N-1", NEW_YORK);
  const push = await pushTo("standard");
  const first = await push(HEADER + rowsOf("2026-03-01T00:00:00", "P-1", "N-1"));
  await rig.became(first, "stored");
  expect(await instants(paris.variableId)).toEqual(["2026-02-28T23:00"]);
  expect(await instants(york.variableId)).toEqual(["2026-03-01T05:00"]);
  const zones = await zonesOf(first);
  expect(zones).toMatch(/^[0-9a-f]{64}$/);

  const second = await push(HEADER + rowsOf("2026-07-01T00:00:00", "P-1", "N-1"));
  await rig.became(second, "stored");
  expect(await zonesOf(second)).toBe(zones);
  await rig.ok("PATCH", `/sources/${york.sourceId}`, { body: { timeZoneId: "Asia/Tokyo" } });
  const third = await push(HEADER + rowsOf("2026-08-01T00:00:00", "P-1", "N-1"));
  await rig.became(third, "stored");
  expect(await zonesOf(third)).not.toBe(zones);
  expect(await instants(york.variableId)).toEqual(["2026-03-01T05:00", "2026-07-01T04:00", "2026-07-31T15:00"]);
  expect(await instants(paris.variableId)).toEqual(["2026-02-28T23:00", "2026-06-30T22:00", "2026-07-31T22:00"]);
});

test("a file whose dates have designators is bound to no zones", async () => {
  const { variableId } = await source("D-1", NEW_YORK);
  const push = await pushTo("standard");
  const id = await push(standardCsv("D-1", "2026-03-01T00:00:00Z", 2));
  await rig.became(id, "stored");
  expect(await instants(variableId)).toEqual(["2026-03-01T00:00"]);
  expect(await zonesOf(id)).toBeNull();
});

test("the elements of a pushed body are in the zones of their variables, in the repeated hour the later", async () => {
  const paris = await source("P-2");
  const york = await source("N-2", NEW_YORK);
  const push = await pushTo("push-body");
  const date = "2026-10-25T02:30:00";
  const element = ({ variableId }: { variableId: number }) => ({ variableId, data: [{ date, value: 1 }] });
  await rig.became(await push(JSON.stringify([element(paris), element(york)])), "stored");
  expect(await instants(paris.variableId)).toEqual(["2026-10-25T01:30"]);
  expect(await instants(york.variableId)).toEqual(["2026-10-25T06:30"]);
});

test("an uploaded file of a vendor is read in the zones of its sources, also of whole days", async () => {
  const paris = await source("P-3");
  const york = await source("N-3", NEW_YORK);
  const target = { sourceSerialNumber: "{meter}", mappingConfig: "kWh" };
  const long = {
    delimiter: ";",
    date: { column: "when", format: "dd.MM.yyyy HH:mm" },
    values: [{ column: "energy", target }],
  };
  await rig.trigger("long_", "delimited", { metadata: long });
  const text = "when;meter;energy\n01.03.2026 00:00;P-3;7\n01.03.2026 00:00;N-3;8\n";
  await rig.became(await rig.store("long_1.csv", text), "stored");
  const days = {
    delimiter: ";",
    date: { column: "day" },
    day: { from: 3, interval: "12h", changeDays: "order" },
    target,
  };
  await rig.trigger("days_", "delimited", { metadata: days });
  await rig.became(await rig.store("days_1.csv", "meter;day;a;b\nP-3;2026-03-02;1;2\nN-3;2026-03-02;3;4\n"), "stored");
  expect(await instants(paris.variableId)).toEqual(["2026-02-28T23:00", "2026-03-01T23:00", "2026-03-02T11:00"]);
  expect(await instants(york.variableId)).toEqual(["2026-03-01T05:00", "2026-03-02T05:00", "2026-03-02T17:00"]);
});

test("a trigger need not name the zone that its mapper requires elsewhere", async () => {
  const { variableId } = await source("H-1");
  await rig.trigger("helios_", "helios-logger");
  const text = "Zeitpunkt;Zähler;Wirkarbeit kWh;Status\n01.03.2026 00:00:00;H-1;12,25;G\n";
  await rig.became(await rig.store("helios_1.csv", text), "stored");
  expect(await instants(variableId)).toEqual(["2026-02-28T23:00"]);
  const mappers: readonly { name: string; settingsSchema: { required?: string[] } }[] =
    await rig.get("/fileTrigger/mappings");
  expect(mappers.find(({ name }) => name === "helios-logger")?.settingsSchema.required ?? []).not.toContain("timeZone");
});

test("a file with a source that is not known waits in quarantine, and is stored when it was created", async () => {
  const push = await pushTo("standard");
  const id = await push(HEADER + rowsOf("2026-03-01T00:00:00", "U-1"));
  const { reason } = await rig.became(id, "quarantined");
  expect(reason).toContain('there is no source with sourceSerialNumber "U-1"');
  const { variableId } = await source("U-1");
  await rig.ok("POST", `/storage/${id}/process`);
  await rig.became(id, "stored");
  expect(await instants(variableId)).toEqual(["2026-02-28T23:00"]);
});

test("the sources of another account do not count", async () => {
  await rig.variable("T-1", SECOND);
  const push = await pushTo("standard");
  const id = await push(HEADER + rowsOf("2026-03-01T00:00:00", "T-1"));
  expect((await rig.became(id, "quarantined"))["reason"]).toContain("there is no source");
});
