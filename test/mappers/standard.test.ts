import { resolve } from "node:path";
import { describe, expect, it } from "vitest";
import type { PushElement } from "#gateway/model.ts";
import { loadMapper } from "#mapping/load-mapper.ts";
import { mapFile } from "#mapping/map-file.ts";
import { digestMapper } from "#mapping/mapper-files.ts";
import { createMemorySink } from "#mapping/segment/memory-sinks.ts";
import { inputFile, WIDE } from "../mapping/kit.ts";

const MODULE = resolve(import.meta.dirname, "../../mappers/standard/mapper.ts");

async function mapStandard(content: string, settings: Readonly<Record<string, unknown>> = {}) {
  const sink = createMemorySink();
  const result = await mapFile({
    inputPath: await inputFile(content),
    fileName: "input.csv",
    filePath: "input.csv",
    mapper: await loadMapper(MODULE, await digestMapper(MODULE)),
    settings,
    rows: "strict",
    limits: WIDE,
    sink,
    signal: new AbortController().signal,
  });
  const elements = sink.bodies.flatMap((body) => JSON.parse(body.toString("utf8")) as PushElement[]);
  return { result, elements };
}

describe("the standard mapper", () => {
  it("recognises its targets after more of them than it keeps", async () => {
    const meters = Array.from({ length: 25_000 }, (_, meter) => `M-${meter}`);
    const rows = [1, 2].flatMap((value) => meters.map((meter) => `2026-03-01T00:00:00Z,${meter},kWh,${value}`));
    const { result, elements } = await mapStandard(
      `date,source_serial_number,mapping_config,value\n${rows.join("\n")}\n`,
    );
    expect(result).toMatchObject({ status: "mapped", points: 25_000, superseded: 25_000 });
    expect(elements.map(({ sourceSerialNumber }) => sourceSerialNumber)).toEqual(meters);
    expect(elements.every(({ data }) => data.length === 1 && data[0]?.value === 2)).toBe(true);
  });

  it("distinguishes targets whose concatenated texts are equal", async () => {
    const { elements } = await mapStandard(
      "date,value,variable_id,source_name,source_ean,mapping_config\n" +
        '2026-03-01T00:00:00Z,1,,"a\nb",,c\n2026-03-01T00:00:00Z,2,,b,"\na",c\n',
    );
    expect(elements.map(({ data, ...target }) => [target, data[0]?.value])).toEqual([
      [{ sourceName: "a\nb", mappingConfig: "c" }, 1],
      [{ sourceEan: "a", mappingConfig: "c" }, 2],
    ]);
  });
});
