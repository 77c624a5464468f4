import iconv from "iconv-lite";
import { describe, expect, it } from "vitest";
import { placeOf } from "#mapping/readers/row-place.ts";
import { collect, openFile } from "../mapping/kit.ts";

async function elements(content: string | Uint8Array, names: string | readonly string[], options = {}) {
  const { file } = await openFile(content, "input.xml");
  return await collect(file.xml({ elements: names, ...options }));
}

const FEED = `<?xml version="1.0"?>
<!-- a comment first -->
<feed xmlns="http://www.w3.org/2005/Atom" xmlns:e="http://naesb.org/espi">
  <entry id="1" e:kind="x" xml:lang="en">
    <e:IntervalBlock>
      <e:value> 12 </e:value><e:value>&lt;<![CDATA[13]]>&#x41;</e:value>
    </e:IntervalBlock>
  </entry>
  <e:IntervalBlock/>
</feed>`;

describe("the XML reader", () => {
  it("returns elements by their local name, with namespace, children, text and place", async () => {
    const [first, second, ...more] = await elements(FEED, "IntervalBlock");
    expect(more).toEqual([]);
    expect(first).toMatchObject({
      name: "IntervalBlock",
      namespace: "http://naesb.org/espi",
      row: 5,
      ancestors: ["feed", "entry"],
      text: "",
    });
    expect(first?.all("value").map(({ text, row }) => [text, row])).toEqual([
      ["12", 6],
      ["<13A", 6],
    ]);
    expect(first?.textOf("value")).toBe("12");
    expect(first?.child("other")).toBeUndefined();
    expect(first?.textOf("other")).toBeUndefined();
    expect(second).toMatchObject({ row: 9, ancestors: ["feed"], children: [] });
    expect(placeOf(second ?? {})).toMatchObject({ row: 9 });
  });

  it("returns attributes by their names as written, without the declarations of namespaces", async () => {
    const [entry, block] = await elements(FEED, ["entry", "IntervalBlock"]);
    expect({ ...entry?.attributes }).toEqual({ id: "1", "e:kind": "x", "xml:lang": "en" });
    // Within an entry that is handed out, its block is not handed out again.
    expect(block?.row).toBe(9);
    const [feed] = await elements(FEED, "feed");
    expect({ ...feed?.attributes }).toEqual({});
    expect(feed?.child("entry")?.child("IntervalBlock")?.all("value")).toHaveLength(2);
  });

  const declared = (encoding: string) => `<?xml version="1.0" encoding="${encoding}"?><r><v>Zähler €</v></r>`;
  it.each([
    ["UTF-8 without a declaration", Buffer.from("<r><v>Zähler €</v></r>")],
    ["UTF-8 with a mark", iconv.encode(declared("utf-8"), "utf-8", { addBOM: true })],
    ["UTF-16 with a mark", iconv.encode(declared("UTF-16"), "utf-16le", { addBOM: true })],
    ["UTF-16, big end first, with a mark", iconv.encode(declared("UTF-16"), "utf-16be", { addBOM: true })],
    ["UTF-16 without a mark", iconv.encode(declared("UTF-16LE"), "utf-16le")],
    ["UTF-16 without a mark, big end first", iconv.encode(declared("UTF-16"), "utf-16be")],
    ["Windows-1252 as declared by the document", iconv.encode(declared("windows-1252"), "windows-1252")],
    ["ISO 8859-15 as declared by the document", iconv.encode(declared("ISO-8859-15"), "iso-8859-15")],
    ["UTF-8 that calls itself UTF-16", Buffer.from(declared("utf-16"))],
  ])("reads %s", async (_, bytes) => {
    expect((await elements(bytes, "r"))[0]?.textOf("v")).toBe("Zähler €");
  });

  it("prefers the encoding of the mapper to that of the document", async () => {
    const bytes = iconv.encode(declared("utf-8"), "windows-1252");
    expect((await elements(bytes, "v", { encoding: "windows-1252" }))[0]?.text).toBe("Zähler €");
    await expect(elements(bytes, "v")).rejects.toMatchObject({ unreadable: true, row: 1 });
  });

  it.each([
    ["a document that is cut off", "<r>\n<v>1</v>", 2, "unclosed tag: r"],
    ["tags that cross", "<r>\n<a></r>", 2, "unexpected close tag"],
    ["a prefix without a namespace", "<r>\n<e:v/></r>", 2, "unbound namespace prefix"],
    ["no document at all", "", 1, "document must contain a root element"],
    ["text", "date,value\n1,2\n", 1, "does not begin with <"],
    ["an entity that nobody knows", "<r>\n&auml;</r>", 2, "undefined entity"],
    ["an attribute twice", '<r a="1" a="2"/>', 1, "duplicate attribute"],
    ["entities of its own", '<!DOCTYPE r [\n<!ENTITY a "b">]><r>&a;</r>', 2, "entities of its own"],
  ])("refuses %s, with its line", async (_, content, row, message) => {
    await expect(elements(content, "r")).rejects.toMatchObject({
      unreadable: true,
      row,
      message: expect.stringContaining(message),
    });
  });

  it("skips a DOCTYPE without entities, and reads nothing that it names", async () => {
    const found = await elements('<!DOCTYPE r SYSTEM "file:///etc/passwd"><r>1</r>', "r");
    expect(found[0]?.text).toBe("1");
  });

  it("limits the depth and the size of an element", async () => {
    await expect(elements("<a>".repeat(200), "b")).rejects.toThrow("deeper than 100 levels");
    const deep = "<a>".repeat(150) + "</a>".repeat(150);
    expect(await elements(deep, "a", { depthMax: 150 })).toHaveLength(1);
    const wide = `<r><b>${"<v>1</v>".repeat(60_000)}</b></r>`;
    expect(await elements(wide, "v")).toHaveLength(60_000);
    await expect(elements(wide, "b", { elementCharactersMax: 1000 })).rejects.toThrow(
      "the element b is larger than 1000 characters",
    );
  });
});
