/** `headgate mapper new`: creates a mapper from a sample file, with its first case. */

import { dirname, relative, resolve } from "node:path";
import { createInterface } from "node:readline/promises";
import { stringify } from "yaml";
import { ConfigError } from "#core/errors.ts";
import { counted } from "#core/grouped-number.ts";
import type { Proposal } from "#mapping/authoring/sketch/propose.ts";
import type { SampleTable } from "#mapping/authoring/sketch/sample.ts";
import { sketchFile } from "#mapping/authoring/sketch/sketch.ts";
import { emptySource } from "#mapping/authoring/sketch/source.ts";
import { mustBeNew, type WrittenMapper, writeMapper } from "#mapping/authoring/sketch/write.ts";
import { locateMapper } from "#mapping/mapper-files.ts";
import { BUNDLED_FOLDER } from "#mapping/workers/bundled.ts";
import { ianaZone } from "#wire/zones.ts";
import { mustBeFile } from "../must-be-file.ts";
import { print, printJson, styled } from "../output.ts";

export interface NewOptions {
  readonly folder: string;
  readonly sample?: string;
  readonly timeZone?: string;
  readonly json?: boolean;
}

export async function newMapper(name: string, options: NewOptions, stop: AbortSignal): Promise<number> {
  const folder = resolve(options.folder);
  await mustBeNew(folder, name);
  await mustNotHide(name);
  const ask = createAsker(options.json === true, stop);
  try {
    const path = options.sample ?? (await ask("A sample of the files (its path; empty for none): "));
    const sketch = path === undefined || path === "" ? null : await sketchSample(name, path, options, ask);
    const written = await writeMapper({
      name,
      folder,
      source: sketch?.proposal.source ?? emptySource(name),
      sample:
        sketch === null ? null : { path: sketch.path, reader: sketch.table.reader, settings: sketch.proposal.settings },
    });
    if (options.json === true)
      printJson({
        modulePath: written.modulePath,
        case: written.first,
        declarative: sketch?.proposal.declarative ?? null,
        assumed: sketch?.proposal.assumed ?? [],
      });
    else printNextSteps(name, written, sketch?.proposal ?? null);
    return 0;
  } finally {
    ask.close();
  }
}

/** A mapper of the same name would replace the bundled one, for every trigger that names it. */
async function mustNotHide(name: string): Promise<void> {
  if ((await locateMapper([BUNDLED_FOLDER], name)) === null) return;
  throw new ConfigError("HG-CLI-001", {
    operation: "make mapper",
    subject: name,
    message: `a mapper ${name} comes with Headgate, and the new one would replace it`,
    hint: "Choose another name, such as that of the vendor.",
  });
}

interface Sketch {
  readonly path: string;
  readonly table: SampleTable;
  readonly proposal: Proposal;
}

async function sketchSample(name: string, path: string, options: NewOptions, ask: Asker): Promise<Sketch> {
  await mustBeFile("read sample", path);
  const full = resolve(path);
  const hint = "Leave the sample out (`headgate mapper new NAME`) for an empty mapper to begin with.";
  const { table, proposal } = await sketchFile(name, { path: full, subject: full, hint }, async (columns) => {
    const timeZone =
      options.timeZone ?? (await ask("The dates carry no time zone. Their zone (such as Europe/Brussels): "));
    if (timeZone !== undefined && ianaZone(timeZone) !== undefined) return timeZone;
    throw noZone(path, timeZone, columns);
  });
  if (proposal === null) throw noZone(path, undefined, []);
  return { path: full, table, proposal };
}

function noZone(subject: string, timeZone: string | undefined, columns: readonly string[]): ConfigError {
  return new ConfigError("HG-CLI-001", {
    operation: "make mapper",
    subject,
    message:
      timeZone === undefined || timeZone === ""
        ? `the dates in ${columns.join(" and ")} carry no time zone`
        : `${timeZone} is neither an IANA nor a Windows time zone`,
    hint:
      "Add --time-zone with the zone that the file is written in: a wrong assumption would shift values " + "silently.",
  });
}

interface Asker {
  /** Undefined when there is no terminal. */
  (question: string): Promise<string | undefined>;
  close(): void;
}

function createAsker(isQuiet: boolean, signal: AbortSignal): Asker {
  if (isQuiet || !process.stdin.isTTY || !process.stdout.isTTY)
    return Object.assign(async () => undefined, { close: () => undefined });
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  const ask = async (question: string) => (await lines.question(question, { signal })).trim();
  return Object.assign(ask, { close: () => lines.close() });
}

function printNextSteps(name: string, { modulePath, first }: WrittenMapper, proposal: Proposal | null): void {
  const shown = (path: string) => relative(process.cwd(), path) || ".";
  print(`${styled("green", "made")} ${shown(modulePath)}`);
  if (first !== null) {
    const failed = first.expected !== "expected.json";
    print(
      `${styled(failed ? "yellow" : "green", "case")} ${shown(first.folder)}: ${outcomeWords(first.outcome, failed)}`,
    );
  }
  for (const one of proposal?.assumed ?? []) print(`${styled("yellow", "check")} ${one}`);
  if (proposal?.declarative !== null && proposal?.declarative !== undefined) {
    const { mapper, settings } = proposal.declarative;
    print(`\nThe bundled mapper ${mapper} may read these files without code, by the trigger's settings:\n`);
    print(stringify({ mapper, metadata: settings }).trimEnd().replaceAll(/^/gm, "  "));
  }
  print("\nNext:");
  if (first !== null) {
    const input = shown(dirname(first.folder));
    print(`  check ${input}/first/${first.expected}: does it match the file?`);
  }
  print(`  headgate map FILE --mapper ${name} --watch    # while you edit ${shown(modulePath)}`);
  print(`  headgate mapper test ${name}`);
}

function outcomeWords(outcome: unknown, failed: boolean): string {
  if (failed) return `not mapped yet: ${(outcome as { readonly message?: string }).message ?? "see the case"}`;
  const elements = (Array.isArray(outcome) ? outcome : (outcome as { elements: unknown[] }).elements) as {
    readonly data: readonly unknown[];
  }[];
  const points = elements.reduce((sum, { data }) => sum + data.length, 0);
  return `${counted(points, "point")} of ${counted(elements.length, "target")}`;
}
