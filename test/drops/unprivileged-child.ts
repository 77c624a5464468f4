/** Polls a local drop as a user who may not do everything. Prints what it met, and first whether the fault is there at all. */
import { mkdir, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import { planFinish } from "../../src/drops/archive-name.ts";
import { createDrop } from "../../src/drops/create.ts";
import { dropOptions } from "../../src/drops/options.ts";
import { HeadgateError, systemCode } from "../../src/support/errors.ts";
import { silentLog } from "../../src/support/log.ts";
import { entryAt, never } from "./field.ts";

const [fault = "", root = "", spool = ""] = process.argv.slice(2);
const options = dropOptions.parse({ kind: "local", name: "field", path: root, watch: false });
const drop = createDrop(options, { log: silentLog });

const attempts: Readonly<Record<string, { proof(): Promise<unknown>; work(): Promise<unknown> }>> = {
  "unreadable file": {
    proof: () => readFile(join(root, "a.csv")),
    work: async () => drop.fetch(await entryAt(drop, "a.csv"), join(spool, "copy"), never),
  },
  "unreadable folder": {
    proof: () => readFile(join(root, "a.csv")),
    work: () => Array.fromAsync(drop.list(never)),
  },
  "read-only folder": {
    proof: () => rename(join(root, "a.csv"), join(root, "b.csv")),
    work: async () => {
      const entry = await entryAt(drop, "a.csv");
      return drop.finish(entry, planFinish({ action: "archive", to: "archive" }, entry, "run1"), never);
    },
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
    work: async () => drop.fetch(await entryAt(drop, "a.csv"), join(spool, "copy"), never),
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
