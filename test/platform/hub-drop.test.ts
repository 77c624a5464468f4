/** The storage of an account as a drop: what every drop must do, as far as files stay where they are. */
import { mkdir, readdir, realpath, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { HubDrop, type HubDropParts } from "#app/platform/hub-drop.ts";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { fetchFile } from "#gateway/drops/drop.ts";
import { hubDropOptions } from "#gateway/drops/options.ts";
import { openFolderBlobs } from "#hub/files/folder-blobs.ts";
import { hubOptions } from "#hub/options.ts";
import { openStore } from "#hub/store/open.ts";
import { conformsAsSource } from "../drops/common-conformance.ts";
import { entryAt, type Field, listed, never } from "../drops/field.ts";
import { rawOptions, temporaryDirectory } from "../hub/fixture.ts";

interface StoredField extends Field {
  readonly drop: HubDrop;
  readonly parts: HubDropParts;
  readonly files: Awaited<ReturnType<typeof openStore>>["files"];
  readonly folder: string;
}

async function openStored(): Promise<StoredField> {
  const { path: directory, remove } = await temporaryDirectory();
  const outside = await realpath(directory);
  const store = await openStore(hubOptions.parse(rawOptions(directory)).store, silentLog);
  for (const id of [1, 2]) await store.identity.putAccount({ id, name: `${id}` });
  const { files } = store;
  const folder = join(outside, "files");
  const facts = { path: folder, storeId: await files.folderId(), graceMs: 0, clock: systemClock };
  const blobs = await openFolderBlobs(facts);
  const options = hubDropOptions.parse({ kind: "hub", name: "account-1" });
  const parts: HubDropParts = {
    ...{ accountId: 1, files, blobs },
    triggersInForce: async () => undefined,
    tokenOf: async (id) => (id === 7 ? "a-token" : null),
    onWaiting: () => () => undefined,
  };
  const drop = new HubDrop(options, "service", parts);
  const root = join(outside, "root");
  await mkdir(root);
  const kind = { cloudItemTypeId: "Text", contentType: "text/csv" } as const;
  const common = { ...kind, tags: [], siteId: null, createdBy: "x", isScanned: false };
  return {
    ...{ drop, options, root, outside, faults: null, files, parts, folder },
    connections: () => 0,
    manyFiles: 60,
    async write(path, content) {
      const { sha256, bytes, release } = await blobs.put(Readable.from([Buffer.from(content)]), 1e9);
      const file = { ...common, fileName: path, size: bytes, sha256, createdMs: 1_000, via: "storage" as const };
      const added = await files.add(1, file, null);
      release();
      if (added.kind !== "added") throw new Error(added.kind);
      return `${added.id}/${path.slice(path.lastIndexOf("/") + 1)}`;
    },
    async remove(path) {
      const removed = await files.remove(1, [Number(path.split("/")[0])]);
      if (removed.kind !== "removed") throw new Error(removed.kind);
    },
    async close() {
      await drop.close();
      await store.close();
      await remove();
    },
  };
}

describe("the storage of an account", () => {
  let field: StoredField;
  beforeEach(async () => {
    field = await openStored();
  });
  afterEach(() => field.close());

  conformsAsSource(() => field);

  test("leaves no content open when the place that it is fetched to cannot be written", async () => {
    const opened: Readable[] = [];
    const { read } = field.parts.blobs;
    field.parts.blobs.read = async (...given) => {
      const stream = await read.apply(field.parts.blobs, given);
      opened.push(stream);
      return stream;
    };
    const entry = await entryAt(field.drop, await field.write("a.csv", "content"));
    await writeFile(join(field.outside, "file"), "not a folder");
    const fetched = fetchFile(field.drop, entry, join(field.outside, "file", "copy"), never);
    await expect(fetched).rejects.toMatchObject({ code: "HG-DROP-013" });
    expect(opened.filter((stream) => !stream.destroyed)).toEqual([]);
  });

  test("lists what waits for a trigger, and another version when a file is offered again", async () => {
    const path = await field.write("in/a.csv", "x");
    const before = await entryAt(field.drop, path);
    expect(field.drop.modifiedMs(before)).toBe(1_000);
    const id = Number(path.split("/")[0]);
    await field.files.advance(1, [{ id, state: "unclaimed", reason: null, atMs: 5 }]);
    expect(await listed(field.drop)).toEqual([]);
    expect(await field.drop.stat(path, never)).toEqual(before);
    await field.files.process(1, id, { atMs: 6, isScanned: false });
    const [again] = await listed(field.drop);
    expect(again).toMatchObject({ path, size: 1 });
    expect(again?.mtime).not.toBe(before.mtime);
  });

  test("lists no file before the triggers that were saved before it are in force", async () => {
    await field.write("a.csv", "x");
    const steps: string[] = [];
    const triggersInForce = async () => {
      steps.push("triggers");
      throw new Error("away");
    };
    const drop = new HubDrop(hubDropOptions.parse({ kind: "hub", name: "d" }), "s", {
      ...field.parts,
      triggersInForce,
    });
    await expect(listed(drop)).rejects.toThrow("away");
    expect(steps).toEqual(["triggers"]);
    await drop.close();
  });

  test("tells how a file came, and no other account's", async () => {
    const path = await field.write("a.csv", "x");
    const id = path.split("/")[0];
    const sender = `x, by upload (stored file ${id})`;
    const common = { service: "service", operationPrefix: `file-${id}`, namesTrigger: true, sender };
    expect(await field.drop.provenance(path)).toEqual({ ...common, ingestionType: "UploadInStorage" });
    const other = new HubDrop(hubDropOptions.parse({ kind: "hub", name: "d" }), "s", { ...field.parts, accountId: 2 });
    expect(await listed(other)).toEqual([]);
    expect(await other.provenance(path)).toBeNull();
    expect(await other.stat(path, never)).toBeNull();
    const entry = await entryAt(field.drop, path);
    const fetched = fetchFile(other, entry, join(field.outside, "copy"), never);
    await expect(fetched).rejects.toMatchObject({ code: "HG-DROP-006" });
    await other.close();
  });

  test("leaves the files where they are, whatever the plan", async () => {
    const entry = await entryAt(field.drop, await field.write("a.csv", "x"));
    for (const plan of [{ action: "leave" }, { action: "delete" }, { action: "archive", to: "archive/a.csv" }] as const)
      expect(await field.drop.finish([{ entry, plan }])).toMatchObject([{ value: "done" }]);
    expect(await listed(field.drop)).toEqual([entry]);
  });

  test("refuses bytes that were damaged in the folder", async () => {
    const path = await field.write("a.csv", "content");
    const all = await readdir(field.folder, { recursive: true });
    const blob = all.find((name) => /[0-9a-f]{64}$/.test(name)) ?? "";
    await writeFile(join(field.folder, blob), "CONTENT");
    const fetched = fetchFile(field.drop, await entryAt(field.drop, path), join(field.outside, "copy"), never);
    await expect(fetched).rejects.toMatchObject({ code: "HG-HUB-006" });
  });
});
