/** Entries of the Atom feed, and the tree of their links: usage point, meter reading, reading type, interval blocks. */
import type { XmlElement } from "headgate/mapper";

const ESPI = "http://naesb.org/espi";

export interface Entry {
  readonly id: string;
  readonly title: string;
  readonly self: string;
  readonly up: string;
  readonly related: readonly string[];
  /** The resources of the entry; usually one, but there may be several interval blocks. */
  readonly resources: readonly XmlElement[];
  readonly element: XmlElement;
}

/** Links and content may come in any order. Resources of other namespaces, such as customer data, are left out. */
export function readEntry(element: XmlElement): Entry {
  const hrefs = (rel: string) =>
    element
      .all("link")
      .filter(({ attributes }) => attributes["rel"] === rel)
      .map(({ attributes }) => (attributes["href"] ?? "").trim().replace(/\/+$/, ""));
  return {
    id: (element.textOf("id") ?? "").replace(/^urn:uuid:/i, ""),
    title: element.textOf("title") ?? "",
    self: hrefs("self")[0] ?? "",
    up: hrefs("up")[0] ?? "",
    related: hrefs("related"),
    resources: element
      .all("content")
      .flatMap((content) => content.children)
      .filter(({ namespace }) => namespace === ESPI),
    element,
  };
}

export interface Node {
  readonly entry: Entry;
  readonly resource: XmlElement;
}

/** The known part of the tree. Entries come in any order, so a reading may have to wait for the end of the file. */
export class Tree {
  readonly usagePoints = new Nodes();
  readonly meterReadings = new Nodes();
  readonly readingTypes = new Nodes();

  add(entry: Entry): void {
    for (const resource of entry.resources) {
      if (resource.name === "UsagePoint") this.usagePoints.add({ entry, resource });
      else if (resource.name === "MeterReading") this.meterReadings.add({ entry, resource });
      else if (resource.name === "ReadingType") this.readingTypes.add({ entry, resource });
    }
  }

  readingTypeOf({ entry }: Node): Node | undefined {
    for (const href of entry.related) {
      const found = this.readingTypes.at(href);
      if (found !== undefined) return found;
    }
    return undefined;
  }
}

/** Nodes of one kind, found by the links of those below them. */
class Nodes {
  readonly all: Node[] = [];
  readonly #bySelf = new Map<string, Node>();
  readonly #byRelated = new Map<string, Node>();

  add(node: Node): void {
    this.all.push(node);
    const { self, related } = node.entry;
    if (self !== "") this.#bySelf.set(self, node);
    for (const href of related) this.#byRelated.set(href, node);
  }

  /** The only node, for feeds without links. */
  get only(): Node | undefined {
    return this.all.length === 1 ? this.all[0] : undefined;
  }

  at(self: string): Node | undefined {
    return this.#bySelf.get(self);
  }

  /** The node above the entry: by its `related` links, or because the entry's own path continues the node's. */
  above(entry: Entry): Node | undefined {
    const related = this.#byRelated.get(entry.self) ?? this.#byRelated.get(entry.up);
    if (related !== undefined) return related;
    for (const href of [entry.up, entry.self])
      for (let path = href; path !== ""; path = path.slice(0, Math.max(0, path.lastIndexOf("/")))) {
        const found = this.#bySelf.get(path);
        if (found !== undefined) return found;
      }
    return undefined;
  }
}
