/**
 * Polls a local drop as a user who may not do everything. Prints what it met, and first whether the fault is
 * there at all.
 */

import { mkdir, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import { HeadgateError, systemCode } from "#core/errors.ts";
import { silentLog } from "#core/log.ts";
import { createDrop } from "#gateway/drops/create.ts";
import { fetchFile, finishFile } from "#gateway/drops/drop.ts";
import { planFinish } from "#gateway/drops/finish.ts";
import { dropOptions } from "#gateway/drops/options.ts";
import { entryAt, never } from "./field.ts";

const [fault = "", root = "", spool = ""] = process.argv.slice(2);
const options = dropOptions.parse({ kind: "local", name: "field", path: root, watch: false });
const drop = await createDrop(options, { log: silentLog });

async function fetchIt(): Promise<unknown> {
  const entry = await entryAt(drop, "a.csv");
  const destination = join(spool, "copy");
  const listed = await drop.fetch([entry, entry], join(spool, "list"), never);
  if (listed.some(({ status }) => (status === "rejected") !== (proof !== "none")))
    throw new Error(`a list of files gave ${JSON.stringify(listed)}`);
  return fetchFile(drop, entry, destination, never);
}

async function finishIt(): Promise<unknown> {
  const entry = await entryAt(drop, "a.csv");
  const plan = planFinish({ action: "archive", to: "archive" }, entry, "run1");
  return finishFile(drop, entry, plan, never);
}

const attempts: Readonly<Record<string, { proof(): Promise<unknown>; work(): Promise<unknown> }>> = {
  "unreadable file": {
    proof: () => readFile(join(root, "a.csv")),
    work: fetchIt,
  },
  "unreadable folder": {
    proof: () => readFile(join(root, "a.csv")),
    work: () => Array.fromAsync(drop.list(never)),
  },
  "read-only folder": {
    proof: async () => {
      await rename(join(root, "a.csv"), join(root, "b.csv"));
      await rename(join(root, "b.csv"), join(root, "a.csv"));
    },
    work: finishIt,
  },
  "unwritable folder": {
    proof: () => rename(join(root, "a.csv"), join(root, "b.csv")),
    work: async () => {
      const found = await drop.probe(never);
      const refused = found.find(({ level, about }) => level === "failed" && about === "rights");
      if (refused !== undefined) throw new Error(refused.what.replaceAll(root, ""));
    },
  },
  "read-only spool": {
    proof: () => mkdir(join(spool, "proof")),
    work: fetchIt,
  },
};

const attempt = attempts[fault];
const proof = await attempt?.proof().then(
  () => "none",
  (thrown: unknown) => systemCode(thrown),
);
const met = await attempt?.work().then(
  (value) => ({ value }),
  (thrown: unknown) => ({
    kind: thrown instanceof Error ? thrown.name : "",
    code: thrown instanceof HeadgateError ? thrown.code : String(thrown),
  }),
);
await drop.close();
process.stdout.write(JSON.stringify({ proof, met }));
