/** Traces name the sources also where these are bundled, as in the published package (docs/decisions/0033). */
import { readFileSync } from "node:fs";
import { SourceMap, type SourceMapPayload } from "node:module";
import { fileURLToPath } from "node:url";

const PLACE = /(file:\/\/\S+?\.js):(\d+):(\d+)/g;

/** `trace` with places of sources, such as `src/gateway.ts:12:3`, where a map is beside the bundled module. */
export function withSourcePlaces(trace: string): string {
  const maps = new Map<string, SourceMap | null>();
  return trace.replace(PLACE, (place, url: string, line: string, column: string) => {
    if (!maps.has(url)) maps.set(url, mapOf(url));
    const origin = maps.get(url)?.findOrigin(Number(line), Number(column));
    if (origin === undefined || !("fileName" in origin)) return place;
    return `${origin.fileName.replace(/^(?:\.\.\/)+/, "")}:${origin.lineNumber}:${origin.columnNumber}`;
  });
}

function mapOf(url: string): SourceMap | null {
  try {
    return new SourceMap(JSON.parse(readFileSync(fileURLToPath(`${url}.map`), "utf8")) as SourceMapPayload);
  } catch {
    // A module that is not bundled has none.
    return null;
  }
}
