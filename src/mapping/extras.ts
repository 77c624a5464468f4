/** Version and tags of readings, kept once for all readings that share them. */

export interface Extra {
  readonly version: string;
  /** Fields of the reading's JSON after `value`: `,"version":"v1","tags":{…}`. */
  readonly json: string;
  /** Bytes of `json`. */
  readonly bytes: number;
  /**
   * Field of the element's JSON before `data`: `"tags":{…},`. Readings with other element tags go into another element.
   */
  readonly element: string;
  readonly elementBytes: number;
}

export const NO_EXTRA: Extra = { version: "", json: "", bytes: 0, element: "", elementBytes: 0 };

type Tags = Readonly<Record<string, string>>;

/** Rough overhead of an entry beside its text: objects, and its place in the map. */
const ENTRY_BYTES = 200;

export class Extras {
  #list: Extra[] = [NO_EXTRA];
  readonly #indexes = new Map<string, number>();
  /** Rough size of all entries in memory. */
  bytes = 0;

  /** Returns the index of version and tags. */
  add(version: string | undefined, tags: Tags | undefined, batchTags: Tags | undefined): number {
    const json =
      (version === undefined ? "" : `,"version":${JSON.stringify(version)}`) +
      (tags === undefined ? "" : `,"tags":${JSON.stringify(tags)}`);
    const element = batchTags === undefined ? "" : `"tags":${JSON.stringify(batchTags)},`;
    const key = `${json}\n${element}`;
    const known = this.#indexes.get(key);
    if (known !== undefined) return known;
    const index = this.#list.push(makeExtra(version ?? "", json, element)) - 1;
    this.#indexes.set(key, index);
    this.bytes += 4 * key.length + ENTRY_BYTES;
    return index;
  }

  at(index: number): Extra {
    return this.#list[index] ?? NO_EXTRA;
  }

  clear(): void {
    this.#list = [NO_EXTRA];
    this.#indexes.clear();
    this.bytes = 0;
  }
}

function makeExtra(version: string, json: string, element: string): Extra {
  return {
    version,
    json,
    bytes: Buffer.byteLength(json),
    element,
    elementBytes: Buffer.byteLength(element),
  };
}

/** Converts an entry to text for a file, and back. */
export function extraText({ version, json, element }: Extra): string {
  return JSON.stringify([version, json, element]);
}

export function extraOf(text: string): Extra {
  const [version = "", json = "", element = ""] = JSON.parse(text) as string[];
  return makeExtra(version, json, element);
}
