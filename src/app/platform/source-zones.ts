/** Tables of the zones of the sources of an account, for the gateway inside the hub. */
import type { InnerGateway } from "#gateway/gateway.ts";
import type { SourceZone } from "#hub/store/source-zones.ts";
import type { HubStore } from "#hub/store/store.ts";
import type { IdZones, TextZones, ZoneTable } from "#mapping/contract.ts";

/** So many rows are read at once. */
const PAGE_ROWS = 10_000;
/** Attempts to read a structure that changes meanwhile. */
const READS_MAX = 3;

/** `idOf`: the account of a service. */
export function zoneTables(zones: HubStore["zones"], idOf: (service: string) => number): InnerGateway["zoneTables"] {
  return {
    version: (service) => zones.version(idOf(service)),
    async text(service) {
      const accountId = idOf(service);
      for (let reads = 1; ; reads += 1) {
        const version = await zones.version(accountId);
        const table = await readTable(zones, accountId);
        if (reads === READS_MAX || (await zones.version(accountId)) === version) return JSON.stringify(table);
      }
    },
  };
}

async function readTable(zones: HubStore["zones"], accountId: number): Promise<ZoneTable> {
  const names = new Positions();
  const zoneOfSource = new Map<number, number>();
  const sources = new Ranges();
  const variables = new Ranges();
  const serialNumbers = new Texts();
  const eans = new Texts();
  const meterNumbers = new Texts();
  const sourceNames = new Texts();
  await eachRow<SourceZone>(
    (afterId) => zones.sources(accountId, afterId, PAGE_ROWS),
    (source) => {
      const zone = names.of(source.zone);
      zoneOfSource.set(source.id, zone);
      sources.add(source.id, zone);
      serialNumbers.add(source.serialNumber, zone);
      eans.add(source.ean, zone);
      meterNumbers.add(source.meterNumber, zone);
      sourceNames.add(source.name, zone);
    },
  );
  await eachRow(
    (afterId) => zones.variables(accountId, afterId, PAGE_ROWS),
    ({ id, sourceId }) => {
      const zone = zoneOfSource.get(sourceId);
      if (zone !== undefined) variables.add(id, zone);
    },
  );
  return {
    zones: names.all,
    ids: { variableId: variables.all, sourceId: sources.all },
    texts: {
      sourceSerialNumber: serialNumbers.all,
      sourceEan: eans.all,
      sourceName: sourceNames.all,
      meterNumber: meterNumbers.all,
    },
  };
}

async function eachRow<Row extends { readonly id: number }>(
  pageAfter: (id: number) => Promise<readonly Row[]>,
  take: (row: Row) => void,
): Promise<void> {
  for (let afterId = 0; ; ) {
    const page = await pageAfter(afterId);
    for (const row of page) take(row);
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE_ROWS) return;
    afterId = last.id;
    // The reads of SQLite are synchronous: other work has its turn.
    await new Promise((resolve) => setImmediate(resolve));
  }
}

class Positions {
  readonly all: string[] = [];
  readonly #known = new Map<string, number>();

  of(name: string): number {
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    this.#known.set(name, this.all.length);
    return this.all.push(name) - 1;
  }
}

/** Ids come in their order. */
class Ranges {
  readonly #ranges: [first: number, last: number, zone: number][] = [];

  add(id: number, zone: number): void {
    const latest = this.#ranges.at(-1);
    if (latest?.[1] === id - 1 && latest[2] === zone) latest[1] = id;
    else this.#ranges.push([id, id, zone]);
  }

  get all(): IdZones {
    return this.#ranges;
  }
}

class Texts {
  readonly #zones = new Map<string, Set<number>>();

  add(text: string | null, zone: number): void {
    if (text === null || text === "") return;
    const zones = this.#zones.get(text) ?? new Set();
    this.#zones.set(text, zones.add(zone));
  }

  get all(): readonly TextZones[] {
    return [...this.#zones].map(([text, zones]) => [text, ...zones]);
  }
}
