/** Writes the folder of a new mapper: the module, its README, and a first case made from the sample. */
import { copyFile, mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { stringify } from "yaml";
import { ConfigError } from "#core/errors.ts";
import { locateMapper } from "../../mapper-files.ts";
import { runCase, updateCase } from "../cases.ts";
import type { SampleReader } from "./sample.ts";

export interface NewMapper {
  readonly name: string;
  /** Folder of mappers. */
  readonly folder: string;
  readonly source: string;
  readonly sample: {
    readonly path: string;
    readonly reader: SampleReader;
    readonly settings: Readonly<Record<string, unknown>>;
  } | null;
}

export interface WrittenMapper {
  readonly modulePath: string;
  /** The mapper's result for its first case; null without a sample. */
  readonly first: { readonly folder: string; readonly expected: string; readonly outcome: unknown } | null;
}

const NAME = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;
/** A case should be short enough to read: a longer text is cut to its beginning. */
const CASE_LINES = 200;
const CASE_BYTES_MAX = 1_000_000;

/** Throws a `ConfigError` when the name is invalid or in use. */
export async function mustBeNew(folder: string, name: string): Promise<void> {
  const facts = { operation: "make mapper", subject: name };
  if (!NAME.test(name))
    throw new ConfigError("HG-CLI-001", {
      ...facts,
      message: `"${name}" is no name of a mapper`,
      hint: "Use lower-case words joined by hyphens, such as acme-hourly.",
    });
  const taken = await locateMapper([folder], name);
  if (taken !== null)
    throw new ConfigError("HG-CLI-001", {
      ...facts,
      message: `there is a mapper ${name} already: ${taken}`,
      hint: "Choose another name; nothing was changed.",
    });
}

export async function writeMapper({ name, folder, source, sample }: NewMapper): Promise<WrittenMapper> {
  await mustBeNew(folder, name);
  const home = join(folder, name);
  const modulePath = join(home, "mapper.ts");
  await mkdir(home, { recursive: true });
  await writeFile(modulePath, source);
  await writeFile(join(home, "README.md"), readme(name));
  if (sample === null) return { modulePath, first: null };
  const caseFolder = join(home, "cases", "first");
  await mkdir(caseFolder, { recursive: true });
  await writeInput(sample.path, sample.reader, join(caseFolder, `input${extname(sample.path) || ".txt"}`));
  if (Object.keys(sample.settings).length > 0)
    await writeFile(join(caseFolder, "settings.yaml"), stringify(sample.settings));
  const outcome = await runCase(modulePath, "first");
  await updateCase(modulePath, outcome);
  return { modulePath, first: { folder: caseFolder, expected: outcome.file, outcome: outcome.actual } };
}

async function writeInput(path: string, { kind }: SampleReader, target: string): Promise<void> {
  const { size } = await stat(path);
  if (kind === "csv" || kind === "ndjson") {
    const bytes = await readFile(path);
    await writeFile(target, firstLines(bytes));
    return;
  }
  if (size > CASE_BYTES_MAX)
    throw new ConfigError("HG-CLI-001", {
      operation: "make mapper",
      subject: path,
      message: `the sample has ${size} bytes, and its kind of file cannot be cut`,
      hint: `Give a smaller sample, of at most ${CASE_BYTES_MAX} bytes: it becomes the first case.`,
    });
  await copyFile(path, target);
}

/** As bytes, so that the encoding does not change. */
function firstLines(bytes: Buffer): Buffer {
  let at = -1;
  for (let line = 0; line < CASE_LINES; line += 1) {
    const next = bytes.indexOf(0x0a, at + 1);
    if (next === -1) return bytes;
    at = next;
  }
  // In UTF-16 the line break has a second byte.
  return bytes.subarray(0, bytes[0] === 0xff && bytes[1] === 0xfe ? at + 2 : at + 1);
}

function readme(name: string): string {
  return `# ${name}

What files these are, where they come from, and which of their columns become which targets.

- \`headgate map FILE --mapper ${name} --watch\` shows what the mapper makes of a file, again after each change.
- \`headgate mapper test ${name}\` runs the cases in \`cases/\`; \`--update\` makes them expect the present output:
  check it first.
`;
}
