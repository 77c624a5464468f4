/**
 * A run that a crash interrupted is mapped again, maybe by a newer Headgate, and has to give the same bytes.
 * These digests are never changed: a change of how mapping writes must not change what it writes.
 */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { expect, it } from "vitest";
import { rowsOf } from "#gateway/spool/row-index.ts";
import { caseSample } from "#mapping/authoring/cases.ts";
import { loadMapper } from "#mapping/load-mapper.ts";
import { mapFile } from "#mapping/map-file.ts";
import { digestMapper, locateMapper } from "#mapping/mapper-files.ts";
import { trailerAtEnd } from "#mapping/segment/trailer.ts";
import { createSegment } from "#mapping/segment/writer.ts";
import { BUNDLED_FOLDER } from "#mapping/workers/bundled.ts";
import { temporaryFolder } from "./kit.ts";

/** Mapper, case, batches, and the start of the SHA-256 over the segment and its row index. */
const DIGESTS = [
  ["delimited", "day-rows-in-order", 4, "b96e9ae7062b937e"],
  ["enedis", "account-indexes", 1, "44831f071d388251"],
  ["fluvius", "autumn-quarter-hours", 1, "0f7cea0fa048cca2"],
  ["green-button", "hourly-electricity", 1, "0dc6be82866757cb"],
  ["half-hourly", "settlement-periods", 4, "2380fd6e82a55e54"],
  ["helios-logger", "two-meters-alternate", 1, "64c89e37d874d721"],
  ["mscons", "load-profile", 1, "64cab88a9c113b6a"],
  ["nem12", "five-minutes-by-start", 15, "86ddf784e2699aaa"],
  ["push-body", "kinds-and-levels", 2, "b20d74c74ab5883f"],
  ["records", "arrays-side-by-side", 1, "68a43222806b431d"],
  ["standard", "all-identifiers", 5, "68c545f97c62f7cc"],
  ["toa5", "hourly-table", 1, "b2b31c35c092de4c"],
  ["workbook", "row-a-day-of-texts", 2, "fe685e5f49c9eecc"],
] as const;

it.each(DIGESTS)(
  "the batches and rows of %s, case %s, never change their bytes",
  async (name, example, batches, digest) => {
    const modulePath = (await locateMapper([BUNDLED_FOLDER], name)) ?? "";
    const sample = await caseSample(modulePath, example);
    const segment = join(await temporaryFolder(), "segment");
    const result = await mapFile({
      inputPath: sample.path,
      fileName: sample.fileName ?? basename(sample.path),
      filePath: "in/x",
      mapper: await loadMapper(modulePath, await digestMapper(modulePath)),
      settings: sample.settings,
      rows: sample.rows,
      limits: { pointsMax: 40, bytesMax: 4000 },
      sink: createSegment(segment),
      signal: new AbortController().signal,
    });
    expect(result).toMatchObject({ status: "mapped", batches: { length: batches } });
    const bytes = await readFile(segment);
    const { rows } = trailerAtEnd(segment) ?? expect.fail("no trailer");
    // The batches, and the lines of the rows without their offsets.
    const lines = await Array.fromAsync(rowsOf({ path: segment, span: rows }));
    const index = lines.map(({ offset: _, ...line }) => `${JSON.stringify(line)}\n`).join("");
    const hash = createHash("sha256")
      .update(bytes.subarray(0, rows.offset - 1))
      .update(index);
    expect(hash.digest("hex").slice(0, digest.length)).toBe(digest);
  },
);
