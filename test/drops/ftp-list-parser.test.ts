import { describe, expect, test } from "vitest";
import { mlsdTimeMs, parseListLine, parseMachineLine } from "#gateway/drops/ftp/list-parser.ts";
import { type Field, listed, never, openFtp } from "./field.ts";

describe("a line of LIST", () => {
  test.for([
    ["-rw-r--r-- 1 owner group 12 Mar 01 00:15 a b.csv", "a b.csv", "file", 12, "Mar 01 00:15"],
    ["-rw-r--r--   1 501      20           1057 Dec 11  2023 old.csv", "old.csv", "file", 1057, "Dec 11 2023"],
    ["drwxr-xr-x 2 owner group 4096 Mar 01 00:15 in", "in", "folder", 4096, "Mar 01 00:15"],
    ["lrwxrwxrwx 1 owner group 5 Mar 01 00:15 l -> a.csv", "l", "link", 5, "Mar 01 00:15"],
    ["12-05-96  05:03PM                  4711 meter.csv", "meter.csv", "file", 4711, "12-05-96 05:03PM"],
    ["12-05-96  05:03PM       <DIR>          in", "in", "folder", 0, "12-05-96 05:03PM"],
  ] as const)("%s", ([line, name, kind, size, changed]) => {
    expect(parseListLine(line)).toEqual({ name, kind, size, changed });
  });

  test.for(["", "total 12", "drwxr-xr-x 2 o g 4096 Mar 01 00:15 .."])("%j names no file", (line) => {
    expect(parseListLine(line)).toBe("nothing");
  });

  test("in an unknown style does not become a file", () => {
    expect(parseListLine("ls: cannot open directory")).toBe("unknown");
  });
});

describe("a line of MLSD", () => {
  test("keeps the server's format of the time, and everything after the first space is the name", () => {
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

  test("is converted to an instant", () => {
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

  test("waits for a slow consumer, and returns every file", async () => {
    await withFiles(3000, async (field) => {
      const seen = new Set<string>();
      for await (const entries of field.drop.list(never))
        for (const { path } of entries) {
          if (seen.size % 500 === 0) await new Promise((resolve) => setTimeout(resolve, 5));
          seen.add(path);
        }
      expect(seen.size).toBe(3000);
    });
  });

  test("does not block other callers when it ends early", async () => {
    await withFiles(3000, async (field) => {
      for await (const _ of field.drop.list(never)) break;
      expect(await listed(field.drop)).toHaveLength(3000);
    });
  });
});

describe.for(["auto", "list"] as const)("an FTP listing (%s) whose last line has no end", (listing) => {
  const cutBy = (bytes: number) => (all: Buffer) => all.subarray(0, Math.max(0, all.length - bytes));
  const paths = async (field: Field) => (await listed(field.drop)).map(({ path }) => path).sort();

  async function withThree(work: (field: Field) => Promise<void>): Promise<void> {
    const field = await openFtp(listing)({ listing, maxConnections: 1 });
    try {
      for (const name of ["a.csv", "b.csv", "in/c.csv"]) await field.write(name, "x", new Date("2026-03-01"));
      await work(field);
    } finally {
      await field.close();
    }
  }

  test("fails the poll, and files that it does not show are not missing", async () => {
    await withThree(async (field) => {
      const faults = field.faults as NonNullable<Field["faults"]>;
      faults.sendListing = cutBy(5);
      await expect(listed(field.drop)).rejects.toMatchObject({ code: "HG-DROP-021" });
      // Another part of it is missing now: the two are not equal.
      faults.sendListing = cutBy(9);
      await expect(listed(field.drop)).rejects.toMatchObject({ code: "HG-DROP-021" });
      faults.sendListing = null;
      expect(await paths(field)).toEqual(["a.csv", "b.csv", "in/c.csv"]);
    });
  });

  test("is accepted when the previous one was equal, since some servers never end it", async () => {
    await withThree(async (field) => {
      const faults = field.faults as NonNullable<Field["faults"]>;
      faults.sendListing = cutBy(2);
      await expect(listed(field.drop)).rejects.toMatchObject({ code: "HG-DROP-021" });
      const second = await paths(field).catch((thrown) => thrown.code);
      if (second === "HG-DROP-021") expect(await paths(field)).toEqual(["a.csv", "b.csv", "in/c.csv"]);
      else expect(second).toEqual(["a.csv", "b.csv", "in/c.csv"]);
      // From then on the second one is asked for at once, also when the folder has changed.
      await field.write("d.csv", "x", new Date("2026-03-01"));
      expect(await paths(field)).toEqual(["a.csv", "b.csv", "d.csv", "in/c.csv"]);
    });
  });

  test("is reported by the check only when a second one differs", async () => {
    await withThree(async (field) => {
      const faults = field.faults as NonNullable<Field["faults"]>;
      faults.sendListing = cutBy(2);
      const found = (await field.drop.probe(never)).filter(({ about }) => about === "listing");
      expect(found).toMatchObject([{ level: "ok" }]);
      let bytes = 2;
      faults.sendListing = (all) => {
        bytes += 1;
        return cutBy(bytes)(all);
      };
      const cut = (await field.drop.probe(never)).filter(({ about }) => about === "listing");
      expect(cut).toMatchObject([{ level: "failed", what: expect.stringContaining("broke off") }]);
    });
  });
});
