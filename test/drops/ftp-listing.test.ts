import { describe, expect, test } from "vitest";
import { mlsdTimeMs, parseListLine, parseMachineLine } from "../../src/drops/ftp-listing.ts";
import { type Field, listed, never, openFtp } from "./field.ts";

describe("a line of LIST", () => {
  test.for([
    ["-rw-r--r-- 1 owner group 12 Mar 01 00:15 a b.csv", "a b.csv", "file", 12, "Mar 01 00:15"],
    [
      "-rw-r--r--   1 501      20           1057 Dec 11  2023 old.csv",
      "old.csv",
      "file",
      1057,
      "Dec 11 2023",
    ],
    ["drwxr-xr-x 2 owner group 4096 Mar 01 00:15 in", "in", "folder", 4096, "Mar 01 00:15"],
    ["lrwxrwxrwx 1 owner group 5 Mar 01 00:15 l -> a.csv", "l", "link", 5, "Mar 01 00:15"],
    ["12-05-96  05:03PM                  4711 meter.csv", "meter.csv", "file", 4711, "12-05-96 05:03PM"],
    ["12-05-96  05:03PM       <DIR>          in", "in", "folder", 0, "12-05-96 05:03PM"],
  ] as const)("%s", ([line, name, kind, size, changed]) => {
    expect(parseListLine(line)).toEqual({ name, kind, size, changed });
  });

  test.for(["", "total 12", "drwxr-xr-x 2 o g 4096 Mar 01 00:15 .."])("%j names nothing", (line) => {
    expect(parseListLine(line)).toBe("nothing");
  });

  test("in no known style is not taken for a file", () => {
    expect(parseListLine("ls: cannot open directory")).toBe("unknown");
  });
});

describe("a line of MLSD", () => {
  test("keeps the time as it is told, and everything after the first space is the name", () => {
    const line = "Type=file;Size=3;Modify=20260301001500.123; a;b =c.csv";
    expect(parseMachineLine(line)).toEqual({
      name: "a;b =c.csv",
      kind: "file",
      size: 3,
      changed: "20260301001500.123",
    });
    expect(parseMachineLine("type=cdir;modify=20260301001500; /")).toBe("nothing");
    expect(parseMachineLine("-rw-r--r-- 1 o g 12 Mar 01 00:15 a.csv")).toBe("unknown");
  });

  test("tells an instant", () => {
    expect(mlsdTimeMs("20260301001500.123")).toBe(Date.UTC(2026, 2, 1, 0, 15, 0, 123));
    expect(mlsdTimeMs("Mar 01 00:15")).toBeNull();
  });
});

describe.for(["auto", "list"] as const)("an FTP listing (%s)", (listing) => {
  async function withFiles(count: number, work: (field: Field) => Promise<void>): Promise<void> {
    const field = await openFtp(listing)({ listing, maxConnections: 1 });
    try {
      await Promise.all(Array.from({ length: count }, (_, at) => field.write(`${at}.csv`, "x")));
      await work(field);
    } finally {
      await field.close();
    }
  }

  test("waits for a slow taker, and hands out every file", async () => {
    await withFiles(3000, async (field) => {
      const seen = new Set<string>();
      for await (const { path } of field.drop.list(never)) {
        if (seen.size % 500 === 0) await new Promise((resolve) => setTimeout(resolve, 5));
        seen.add(path);
      }
      expect(seen.size).toBe(3000);
    });
  });

  test("that is left early blocks nobody", async () => {
    await withFiles(3000, async (field) => {
      for await (const _ of field.drop.list(never)) break;
      expect(await listed(field.drop)).toHaveLength(3000);
    });
  });
});
