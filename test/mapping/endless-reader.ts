/**
 * Runs as a process of its own, so that its memory can be measured: reads endless streams by readers that have to stop.
 * The arguments are a folder and the cases in JSON; prints the result of each, and the peak memory of the process.
 */
import { execFileSync, spawn } from "node:child_process";
import { join } from "node:path";
import type { MapperFile } from "#mapping/mapper.ts";
import { createMapperFile } from "#mapping/readers/mapper-file.ts";
import { isFileError } from "#mapping/readers/row-error.ts";
import { RowTracker } from "#mapping/readers/row-place.ts";
import type { EndlessCase, EndlessResult } from "./endless.ts";

const READERS: Readonly<Record<EndlessCase["reader"], (file: MapperFile) => AsyncIterable<unknown>>> = {
  csv: (file) => file.csv(),
  csvRows: (file) => file.csv({ columns: true }),
  csvHeaderAt: (file) => file.csv({ headerAt: () => false }),
  lines: (file) => file.lines(),
  fixedWidth: (file) => file.fixedWidth({ columns: [{ name: "a", start: 1, width: 3 }] }),
  json: (file) => file.json({ path: "$.*" }),
  ndjson: (file) => file.ndjson(),
  xml: (file) => file.xml({ elements: "a", encoding: "utf-8" }),
  async *text(file) {
    yield await file.text();
  },
};

const [folder = "", cases = "[]"] = process.argv.slice(2);
const results: EndlessResult[] = [];
for (const [nth, one] of (JSON.parse(cases) as EndlessCase[]).entries())
  results.push(await readEndless(join(folder, String(nth)), one));
// Kilobytes on Linux.
const peakMB = Math.round(process.resourceUsage().maxRSS / 1024);
process.stdout.write(JSON.stringify({ results, peakMB }));

async function readEndless(path: string, { reader, start, repeat }: EndlessCase): Promise<EndlessResult> {
  execFileSync("mkfifo", [path]);
  const script = 'exec > "$1"; printf %s "$2"; yes "$3" | tr -d "\\n"';
  const writer = spawn("sh", ["-c", script, "sh", path, start, repeat], { stdio: "ignore" });
  const ended = new Promise((resolve) => writer.once("close", resolve));
  const facts = { inputPath: path, fileName: "endless", filePath: "endless", size: 0 };
  const file = createMapperFile(facts, new RowTracker(), () => undefined, new AbortController().signal);
  try {
    for await (const _ of READERS[reader](file));
    return { message: "it ended" };
  } catch (thrown) {
    if (!isFileError(thrown)) return { message: `not clear: ${String(thrown)}` };
    return { message: thrown.message, row: thrown.row, hint: thrown.hint };
  } finally {
    // Its pipe is closed, so it ends by itself.
    await ended;
  }
}
