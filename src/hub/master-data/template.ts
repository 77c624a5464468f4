/**
 * The templates of master data, a workbook and a CSV file. An account gets them as stored files when it first lists the
 * files with their tag, and newer ones when the columns have changed since.
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { type WorkbookTable, writeWorkbook } from "#core/workbook-writer.ts";
import { COLUMNS, type Column, LISTS } from "#mapping/readers/master-data/columns.ts";
import { HELP_SHEETS } from "#mapping/readers/master-data/rows.ts";
import { type MasterDataEntity, TEMPLATE_TAG } from "#wire/index.ts";
import type { IntakeParts } from "../files/intake.ts";
import { kindOf } from "../files/kinds.ts";
import type { StoredFiles } from "../files/service.ts";

const WORKBOOK = "master-data-template.xlsx";
const TEXT = "master-data-template.csv";
/** Name of the sender in the records, which is no user. */
const SENDER = "hub";
const REASON = "a template for master data, which is not offered to triggers";

/** A spreadsheet keeps the digits of cells in this format. */
const TEXT_FORMAT = "@";
const WIDTH = 24;
const WIDE = 90;

export async function offerTemplates(parts: IntakeParts, files: StoredFiles, accountId: number): Promise<void> {
  const { store } = parts;
  let isNew = false;
  for (const [name, openContent] of Object.entries(CONTENTS)) {
    const key = `${name} ${DIGEST}`;
    if (await store.files.hasKey(accountId, key)) continue;
    await addTemplate(parts, files, accountId, { name, key, openContent });
    isNew = true;
  }
  if (isNew) await removeOld(parts, files, accountId);
}

interface Template {
  readonly name: string;
  readonly key: string;
  readonly openContent: () => Promise<Content>;
}

interface Content {
  readonly stream: Readable;
  end(): Promise<void>;
}

async function addTemplate(
  { store, clock }: IntakeParts,
  files: StoredFiles,
  accountId: number,
  { name, key, openContent }: Template,
): Promise<void> {
  const content = await openContent();
  const put = await files.blobs.put(content.stream, Number.MAX_SAFE_INTEGER).finally(() => content.end());
  let isRecorded = false;
  try {
    const draft = { fileName: name, tags: [TEMPLATE_TAG], siteId: null, via: "hub" as const, idempotencyKey: key };
    const facts = { size: put.bytes, sha256: put.sha256, createdBy: SENDER, isScanned: false, unclaimed: REASON };
    const createdMs = clock.now().epochMilliseconds;
    const file = { ...draft, ...facts, ...kindOf(put.head, name), createdMs };
    // Another request may have added it meanwhile. Quotas are for files that the account sends.
    isRecorded = (await store.files.add(accountId, file, null)).kind === "added";
  } finally {
    put.release();
    if (!isRecorded) await files.discard([put.sha256]);
  }
}

/** Templates whose columns have changed since. */
async function removeOld({ store }: IntakeParts, files: StoredFiles, accountId: number): Promise<void> {
  const { rows } = await store.files.list(accountId, { tags: [TEMPLATE_TAG] }, { offset: 0, limit: null });
  const own = rows.filter(({ via }) => via === "hub");
  const newest = new Map(own.map(({ fileName, id }) => [fileName, id]));
  const old = own.filter(({ fileName, id }) => newest.get(fileName) !== id).map(({ id }) => id);
  if (old.length === 0) return;
  const removal = await store.files.remove(accountId, old);
  if (removal.kind === "removed") await files.discard(removal.sha256s);
}

const DIGEST = createHash("sha256")
  .update(JSON.stringify([COLUMNS.map(({ name, about }) => [name, about]), LISTS]))
  .digest("hex")
  .slice(0, 16);

const CONTENTS: Readonly<Record<string, () => Promise<Content>>> = {
  [WORKBOOK]: async () => {
    const folder = await mkdtemp(join(tmpdir(), "headgate-template-"));
    const end = () => rm(folder, { recursive: true, force: true });
    try {
      const path = join(folder, WORKBOOK);
      await writeWorkbook(sheets(), path);
      return { stream: createReadStream(path), end };
    } catch (thrown) {
      await end();
      throw thrown;
    }
  },
  [TEXT]: async () => {
    // The mark lets spreadsheet programs read it as UTF-8.
    const content = `\uFEFF${COLUMNS.filter(isOffered).map(nameOf).join(";")}\r\n`;
    return { stream: Readable.from([Buffer.from(content)]), end: async () => undefined };
  },
};

function sheets(): readonly WorkbookTable[] {
  const tables = { Sites: ["site"], Sources: ["site", "source"], Variables: ["source", "variable"], Users: ["user"] };
  const filled = Object.entries(tables).map(([name, of]): WorkbookTable => {
    const own = of.at(-1);
    const columns = COLUMNS.filter((one) => isOffered(one) && (one.of === own || (of.includes(one.of) && isKey(one))));
    return { name, columns: columns.map((one) => ({ name: one.name, width: WIDTH, format: TEXT_FORMAT })), rows: [] };
  });
  return [
    ...filled,
    {
      name: "Help",
      columns: HELP_SHEETS.Help.map((name) => ({ name, width: name === "about" ? WIDE : WIDTH })),
      rows: COLUMNS.map(({ of, name, about }) => [of, name, about]),
    },
    {
      name: "Lists",
      columns: HELP_SHEETS.Lists.map((name) => ({ name, width: WIDTH })),
      rows: LISTS.map((one) => [...one]),
    },
  ];
}

/** Ids are for entities that exist, and most templates are filled for new ones. */
function isOffered({ fields }: Column): boolean {
  return !fields.includes("id");
}

const KEYS: Readonly<Partial<Record<MasterDataEntity, readonly string[]>>> = {
  site: ["site_name"],
  source: ["source_serial_number", "source_ean", "meter_number"],
};

function isKey({ of, name }: Column): boolean {
  return KEYS[of]?.includes(name) === true;
}

function nameOf({ name }: Column): string {
  return name;
}
