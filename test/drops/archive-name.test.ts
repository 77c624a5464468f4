import { posix } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { planFinish } from "#gateway/drops/finish.ts";
import { dropOptions } from "#gateway/drops/options.ts";
import { insideDrop, listingFilter } from "#gateway/drops/paths.ts";

const part = fc.string({ unit: "grapheme", minLength: 1, maxLength: 80 }).filter((text) => {
  return text !== "." && text !== ".." && !/[/\0\r\n]/.test(text);
});
const path = fc.array(part, { minLength: 1, maxLength: 3 }).map((parts) => parts.join("/"));
const rule = { action: "archive", to: "archive" } as const;
const target = (of: string, tag: string) => {
  const plan = planFinish(rule, { path: of }, tag);
  return plan.action === "archive" ? plan.to : "";
};

test("keeps the folder and the extension, with the run before the extension", () => {
  expect(target("in/a b.tar.csv", "R1")).toBe("archive/in/a b.tar.R1.csv");
  expect(target("noext", "R1")).toBe("archive/noext.R1");
  expect(target(".hidden", "R1")).toBe("archive/.hidden.R1");
});

test("returns leave unchanged, and delete with the tag that names the file while it is set aside", () => {
  expect(planFinish({ action: "leave" }, { path: "a" }, "R1")).toEqual({ action: "leave" });
  expect(planFinish({ action: "delete" }, { path: "a" }, "R1")).toEqual({ action: "delete", tag: "R1" });
});

test("always stays inside the archive folder, with a name that file systems accept", () => {
  fc.assert(
    fc.property(path, (of) => {
      const to = target(of, "01hx2m");
      expect(to.startsWith("archive/")).toBe(true);
      expect(insideDrop("d", to)).toBe(to);
      expect(Buffer.byteLength(posix.basename(to))).toBeLessThanOrEqual(255);
    }),
  );
});

test("shortens a long name by whole characters and keeps run and extension", () => {
  const name = posix.basename(target(`${"電".repeat(84)}.csv`, "R1"));
  expect(name).toMatch(/^電+\.R1\.csv$/);
  expect(Buffer.byteLength(name)).toBeLessThanOrEqual(255);
});

test("gives two runs two names", () => {
  fc.assert(fc.property(path, (of) => target(of, "R1") !== target(of, "R2")));
});

test("lists neither archive folders nor Headgate's own names", () => {
  const options = dropOptions.parse({
    kind: "local",
    name: "d",
    path: "/srv",
    finish: { quarantined: { archive: "bad/files" }, unmatched: "delete" },
  });
  const filter = listingFilter(options);
  expect(filter.entersFolder("archive")).toBe(false);
  expect(filter.entersFolder("bad/files")).toBe(false);
  expect(filter.entersFolder("bad")).toBe(true);
  expect(filter.takesFile("in/.headgate-deleting-1")).toBe(false);
});

test.for(["../up", "/abs", "a/../b", "", "a\\b", "C:/x"])("refuses the archive folder %j", (folder) => {
  const parsed = dropOptions.safeParse({
    kind: "local",
    name: "d",
    path: "/srv",
    finish: { delivered: { archive: folder } },
  });
  expect(parsed.success).toBe(false);
});
