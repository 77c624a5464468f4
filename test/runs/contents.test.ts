import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HeadgateError, TransientError } from "#core/errors.ts";
import { isContainerName } from "#core/file-names.ts";
import type { UnpackLimits } from "#gateway/model.ts";
import { directoryOf, listContents, openEntry } from "#gateway/runs/unpacking/container.ts";
import { type Packed, zip } from "./archives.ts";

const LIMITS: UnpackLimits = {
  entriesMax: 10,
  sizeMax: 20_000_000,
  ratioMax: 200,
  ignore: ["__MACOSX/**/.*", "**/Thumbs.db"],
  names: "utf-8",
};
const never = new AbortController().signal;
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "headgate-"));
});
afterEach(() => rm(folder, { recursive: true }));

async function list(bytes: Buffer, fileName = "field.zip", limits: Partial<UnpackLimits> = {}) {
  const path = join(folder, "input");
  await writeFile(path, bytes);
  return listContents(path, fileName, { ...LIMITS, ...limits }, never);
}

async function refusal(bytes: Buffer, fileName = "field.zip", limits: Partial<UnpackLimits> = {}) {
  const thrown = await list(bytes, fileName, limits).catch((error: unknown) => error);
  if (!(thrown instanceof HeadgateError)) throw new Error("it was not refused", { cause: thrown });
  return [thrown.code, thrown.message];
}

async function contentOf(bytes: Buffer, fileName: string, entry: string): Promise<string> {
  const path = join(folder, "input");
  await writeFile(path, bytes);
  const stream = await openEntry(path, fileName, entry, await directoryOf(path, fileName, LIMITS));
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

it("a container is known by its name alone", () => {
  expect(["a.zip", "A.ZIP", "a.csv.gz", "a.b.Gz"].map(isContainerName)).toEqual([true, true, true, true]);
  expect(["a.xlsx", "a.csv", ".zip", ".gz", "zip", "a.tgz", "a.zip.csv"].some(isContainerName)).toBe(false);
});

describe("the name of an entry", () => {
  const UTF8_BYTES = Buffer.from("Zähler.csv");
  const LATIN1_BYTES = Buffer.from("Z\xE4hler.csv", "latin1");
  const CP437_BYTES = Buffer.from("Z\x84hler.csv", "latin1");

  it.each([
    { what: "UTF-8 by its flag", bytes: UTF8_BYTES, flagged: true, names: "latin-1", path: "Zähler.csv" },
    { what: "UTF-8 by its bytes", bytes: UTF8_BYTES, flagged: false, names: "utf-8", path: "Zähler.csv" },
    { what: "code page 437", bytes: CP437_BYTES, flagged: false, names: "utf-8", path: "Zähler.csv" },
    { what: "Latin-1", bytes: LATIN1_BYTES, flagged: false, names: "latin-1", path: "Zähler.csv" },
    {
      what: "Latin-1 with a wrong flag",
      bytes: LATIN1_BYTES,
      flagged: true,
      names: "latin-1",
      path: "Zähler.csv",
    },
    {
      what: "Latin-1, and nobody says so",
      bytes: LATIN1_BYTES,
      flagged: false,
      names: "utf-8",
      path: "ZΣhler.csv",
    },
  ] as const)("is read as it is meant: $what", async ({ bytes, flagged, names, path }) => {
    const packed = zip([{ name: "x", nameBytes: bytes, flagged, content: "one" }]);
    expect((await list(packed, "field.zip", { names })).entries).toEqual([{ path, size: 3 }]);
  });

  it("tells entries apart whose flag of UTF-8 is wrong", async () => {
    const wrong = (text: string) => ({ name: "x", nameBytes: Buffer.from(text, "latin1"), content: "one" });
    const { entries } = await list(zip([wrong("\xE4.csv"), wrong("\xF6.csv")]), "field.zip", {
      names: "utf-8",
    });
    expect(new Set(entries.map(({ path }) => path)).size).toBe(2);
  });
});

describe("the entries of a zip", () => {
  it("are its files, in every folder, with their unpacked sizes", async () => {
    const bytes = zip([
      { name: "a.csv", content: "one" },
      { name: "in/", content: "" },
      { name: "in/b.csv", content: "two+", stored: true },
      { name: "./c.csv", content: "" },
      { name: "__MACOSX/in/._a.csv", content: "?" },
      { name: "Thumbs.db", content: "?" },
    ]);
    expect(await list(bytes)).toEqual({
      entries: [
        { path: "a.csv", size: 3 },
        { path: "in/b.csv", size: 4 },
        { path: "c.csv", size: 0 },
      ],
      ignored: 2,
    });
    expect(await contentOf(bytes, "field.zip", "in/b.csv")).toBe("two+");
  });

  it("may be none", async () => {
    expect(await list(zip([]))).toEqual({ entries: [], ignored: 0 });
  });

  it("that cannot be unpacked by themselves are listed, and refused when they are opened", async () => {
    const odd: Packed[] = [
      { name: "secret.csv", content: "x", encrypted: true },
      { name: "link.csv", content: "/etc/passwd", symbolicLink: true },
      { name: "new.csv", content: "x", method: 93 },
    ];
    const bytes = zip([...odd, { name: "good.csv", content: "good" }]);
    expect((await list(bytes)).entries.map(({ path }) => path)).toEqual([
      "secret.csv",
      "link.csv",
      "new.csv",
      "good.csv",
    ]);
    await expect(contentOf(bytes, "field.zip", "secret.csv")).rejects.toThrow("encrypted");
    await expect(contentOf(bytes, "field.zip", "link.csv")).rejects.toThrow("symbolic link");
    await expect(contentOf(bytes, "field.zip", "new.csv")).rejects.toThrow("method (93)");
    expect(await contentOf(bytes, "field.zip", "good.csv")).toBe("good");
  });
});

describe("a gzip", () => {
  it("has one entry of its own name without .gz, whatever name it carries inside", async () => {
    const bytes = Buffer.concat([gzipSync("one"), gzipSync("two")]);
    expect(await list(bytes, "field.csv.gz")).toEqual({
      entries: [{ path: "field.csv", size: 6 }],
      ignored: 0,
    });
    expect(await contentOf(bytes, "field.csv.gz", "field.csv")).toBe("onetwo");
  });

  it("that ends too early or is none is refused", async () => {
    expect((await refusal(gzipSync("much text").subarray(0, -4), "a.csv.gz"))[0]).toBe("HG-PACK-001");
    expect((await refusal(Buffer.from("date;value\n"), "a.csv.gz"))[0]).toBe("HG-PACK-001");
  });

  it("that grows beyond the ratio or the size is stopped on the way", async () => {
    const bomb = gzipSync(Buffer.alloc(8_000_000));
    expect(await refusal(bomb, "a.gz")).toEqual(["HG-PACK-002", expect.stringContaining("more than 200 times")]);
    expect(await refusal(bomb, "a.gz", { ratioMax: 2_000, sizeMax: 1_000 })).toEqual([
      "HG-PACK-002",
      expect.stringContaining("more than 1000 bytes"),
    ]);
  });
});

describe("a zip is refused as a whole", () => {
  it.each(["../a.csv", "in/../../a.csv", "/etc/a.csv", "C:\\a.csv", "..\\a.csv", "in//a.csv", "a\u0007.csv"])(
    "for the name %j",
    async (name) => {
      const bytes = zip([
        { name: "good.csv", content: "x" },
        { name, content: "x" },
      ]);
      expect((await refusal(bytes))[0]).toBe("HG-PACK-003");
    },
  );

  it("for two entries of one name, also when they are written differently", async () => {
    const bytes = zip([{ name: "in/a.csv" }, { name: "./in\\a.csv" }]);
    expect(await refusal(bytes)).toEqual(["HG-PACK-003", expect.stringContaining("two entries")]);
  });

  it("for more entries than the limit", async () => {
    const entries = Array.from({ length: 11 }, (_, nth) => ({ name: `${nth}.csv` }));
    expect(await refusal(zip(entries))).toEqual(["HG-PACK-002", expect.stringContaining("more than 10 entries")]);
    expect((await list(zip(entries.slice(1)))).entries).toHaveLength(10);
  });

  it("for a bomb, also one of many entries that show the same bytes", async () => {
    const zeros = Buffer.alloc(1_500_000);
    expect(await refusal(zip([{ name: "a", content: Buffer.alloc(8_000_000) }]))).toEqual([
      "HG-PACK-002",
      expect.stringContaining("times"),
    ]);
    expect(await refusal(zip([{ name: "a", content: zeros, shownTimes: 9 }]))).toEqual([
      "HG-PACK-002",
      expect.stringContaining("times"),
    ]);
    expect((await list(zip([{ name: "a", content: zeros }]))).entries).toHaveLength(1);
  });

  it("for sizes and checksums that do not agree with its bytes", async () => {
    expect((await refusal(zip([{ name: "a", content: "text", claims: { size: 3 } }])))[0]).toBe("HG-PACK-001");
    expect((await refusal(zip([{ name: "a", content: "text", claims: { size: 5 } }])))[0]).toBe("HG-PACK-001");
    expect(await refusal(zip([{ name: "a", content: "text", claims: { crc32: 7 } }]))).toEqual([
      "HG-PACK-001",
      expect.stringContaining("checksum"),
    ]);
  });

  it("when it is cut off, overwritten in the middle, or no zip", async () => {
    const whole = zip([{ name: "a.csv", content: "some text that is long enough to be deflated" }]);
    const torn = Buffer.from(whole);
    torn.fill(0xff, 40, 50);
    for (const bytes of [whole.subarray(0, -10), torn, Buffer.from("date;value\n"), Buffer.alloc(0)])
      expect((await refusal(bytes))[0]).toBe("HG-PACK-001");
  });

  it("when it is a workbook under the name of an archive", async () => {
    const workbook = zip([{ name: "[Content_Types].xml" }, { name: "xl/workbook.xml" }]);
    expect(await refusal(workbook)).toEqual(["HG-PACK-001", expect.stringContaining("such as a workbook")]);
  });
});

it("a copy that cannot be read now is no fault of the container", async () => {
  const path = join(folder, "nothing.zip");
  await expect(listContents(path, "nothing.zip", LIMITS, never)).rejects.toThrow(TransientError);
});
