/** Traces name the sources also where these are bundled, as in the published package (docs/dev/decisions/0033). */
import { readFileSync } from "node:fs";
import { SourceMap, type SourceMapPayload } from "node:module";
import { fileURLToPath } from "node:url";

const PLACE = /(file:\/\/\S+?\.js):(\d+):(\d+)/g;
/** The folder of the bundle. A message may name any other file, which is not read. */
const OWN = new URL("../../../", import.meta.url).href;

/** A map takes milliseconds to parse, and a fault may be logged many times. */
const maps = new Map<string, SourceMap>();

/** `trace` with places of sources, such as `src/gateway/gateway.ts:12:3`, where a map is beside the bundled module. */
export function withSourcePlaces(trace: string): string {
  return trace.replace(PLACE, (place, url: string, line: string, column: string) => {
    const map = url.startsWith(OWN) ? mapOf(url) : null;
    const origin = map?.findOrigin(Number(line), Number(column));
    if (origin === undefined || !("fileName" in origin)) return place;
    return `${origin.fileName.replace(/^(?:\.\.\/)+/, "")}:${origin.lineNumber}:${origin.columnNumber}`;
  });
}

function mapOf(url: string): SourceMap | null {
  const known = maps.get(url);
  if (known !== undefined) return known;
  try {
    const map = new SourceMap(JSON.parse(readFileSync(fileURLToPath(`${url}.map`), "utf8")) as SourceMapPayload);
    maps.set(url, map);
    return map;
  } catch {
    // A module that is not bundled has none.
    return null;
  }
}
