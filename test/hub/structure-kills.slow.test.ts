/** The hub as a real process, killed between two slices of a changed form, and of a removal. */
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openSqliteStore } from "#hub/store/sqlite/index.ts";
import { createChain, temporaryDirectory, until } from "./fixture.ts";
import { HubProcess } from "./hub-process.ts";

const SOURCES = 700;

const hubProcess = new HubProcess();
let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
beforeEach(async () => {
  directory = await temporaryDirectory();
});
afterEach(async () => {
  await hubProcess.end("SIGKILL");
  await directory.remove();
});

test("a hub killed between slices of a form, and again when it continues, ends with the whole change", async () => {
  const hub = await hubProcess.run(directory.path);
  const { siteId } = await createChain(hub);
  const field = { name: "Power", type: 1 };
  const form = await hub.post("/form", { name: "Contract", groups: [{ name: "Main", fields: [field] }] });
  await hubProcess.end("SIGTERM");
  const store = await openSqliteStore(join(directory.path, "hub.sqlite"));
  const made = Array.from({ length: SOURCES }, (_, at) => {
    const clientData = { Contract: { Main: { Power: String(at) } } };
    return store.structure.createSource(1, { name: `${at}`, siteId, sourceTypeId: 1, clientData });
  });
  await Promise.all(made);
  await store.close();

  const dying = await hubProcess.run(directory.path, "hub.form.slice");
  const body = { name: "Invoice", groups: [{ name: "Main", fields: [{ ...field, type: 2 }] }] };
  await expect(dying.call("PUT", `/form/${form.id}`, { body })).rejects.toThrow();
  expect(await hubProcess.killed()).toBe("SIGKILL");
  await hubProcess.run(directory.path, "hub.form.slice").catch(() => null);
  expect(await hubProcess.killed()).toBe("SIGKILL");

  const living = await hubProcess.run(directory.path);
  // A write of the structure waits for the last slice.
  await living.post("/sites", { name: "Site", typeId: 3, timeZoneId: "UTC" });
  await until(async () => ((await living.get(`/form/${form.id}`)).name === "Invoice" ? true : undefined));
  const sources: { name: string; clientData: unknown }[] = await living.get("/sources");
  const values = sources.slice(1).map(({ name, clientData }) => [name, clientData]);
  expect(values).toEqual(sources.slice(1).map(({ name }) => [name, { Invoice: { Main: { Power: Number(name) } } }]));
  expect(values).toHaveLength(SOURCES);
});

test("a hub killed between slices of a removal, and again when it continues, ends with the whole removal", async () => {
  const hub = await hubProcess.run(directory.path);
  const { siteId, sourceId } = await createChain(hub);
  await hubProcess.end("SIGTERM");
  const store = await openSqliteStore(join(directory.path, "hub.sqlite"));
  const body = { sourceId, variableTypeId: 1, unitId: 8, granularity: 15, granularityTimeBase: 1, quantityType: 1 };
  const made = Array.from({ length: SOURCES }, (_, at) =>
    store.structure.createVariable(1, { ...body, name: `${at}` }),
  );
  await Promise.all(made);
  await store.close();

  const dying = await hubProcess.run(directory.path, "hub.removal.slice");
  await expect(dying.call("DELETE", `/sites/${siteId}`)).rejects.toThrow();
  expect(await hubProcess.killed()).toBe("SIGKILL");
  await hubProcess.run(directory.path, "hub.removal.slice").catch(() => null);
  expect(await hubProcess.killed()).toBe("SIGKILL");

  const living = await hubProcess.run(directory.path);
  // A write of the structure waits for the last slice.
  const id = await living.post("/sites", { name: "Next", typeId: 3, timeZoneId: "UTC" });
  expect((await living.get("/sites")).map((site: { id: number }) => site.id)).toEqual([id]);
  expect(await living.get("/variables")).toEqual([]);
});
