/** The mappers that triggers can name: those of the configured folders, then the bundled ones. */

import { ConfigError } from "#core/errors.ts";
import type { CatalogueEntry, MapperCatalogue } from "../contract.ts";
import { loadMapper } from "../load-mapper.ts";
import type { Mapper } from "../mapper.ts";
import { digestMapper, locateMapper, mapperNames, nameOf } from "../mapper-files.ts";
import { settingsFault } from "../settings.ts";
import { isBundled, searchFolders } from "./bundled.ts";
import { createInspector, type Inspector } from "./inspector.ts";
import { factsOf, VERSION_DEFAULT } from "./mapper-facts.ts";
import type { MapperModule } from "./messages.ts";

/**
 * Folders are absolute paths; the first with a name wins. The catalogue ends with the process, or by `close`.
 */
export function createCatalogue(folders: readonly string[], inspector: Inspector = createInspector()): MapperCatalogue {
  const places = searchFolders(folders);
  const known = new Map<string, CatalogueEntry>();

  async function entryOf(modulePath: string): Promise<CatalogueEntry> {
    const digest = await digestMapper(modulePath);
    const key = `${modulePath}?${digest}`;
    const entry =
      known.get(key) ??
      (isBundled(modulePath)
        ? describeOwn(await loadMapper(modulePath, digest), modulePath, digest)
        : await describe({ modulePath, digest }, inspector));
    known.set(key, entry);
    return entry;
  }

  return {
    async find(name) {
      const modulePath = await locateMapper(places, name);
      return modulePath === null ? null : await entryOf(modulePath);
    },
    async list() {
      const entries: CatalogueEntry[] = [];
      for (const name of await mapperNames(places)) {
        const modulePath = await locateMapper(places, name);
        if (modulePath !== null) entries.push(await entryOrFault(modulePath, entryOf));
      }
      return entries;
    },
    close: () => inspector.close(),
  };
}

async function describe(module: MapperModule, inspector: Inspector): Promise<CatalogueEntry> {
  const { name, version, summary, settingsSchema, sourceZone } = await inspector.describe(module);
  return {
    identity: { name, version, digest: module.digest },
    summary,
    modulePath: module.modulePath,
    checkSettings: (settings) => inspector.settingsFault(module, settings),
    settingsSchema,
    sourceZone,
  };
}

/** Bundled mappers are as trustworthy as Headgate, and need no process of their own for their facts. */
function describeOwn(mapper: Mapper, modulePath: string, digest: string): CatalogueEntry {
  const { name, version, summary, settingsSchema, sourceZone } = factsOf(mapper);
  return {
    identity: { name, version, digest },
    summary,
    modulePath,
    checkSettings: (settings) => Promise.resolve(settingsFault(mapper, settings)),
    settingsSchema,
    sourceZone,
  };
}

/** A mapper that cannot be loaded is listed with the reason, so that it hides no other. */
async function entryOrFault(
  modulePath: string,
  entryOf: (modulePath: string) => Promise<CatalogueEntry>,
): Promise<CatalogueEntry> {
  try {
    return await entryOf(modulePath);
  } catch (thrown) {
    if (!(thrown instanceof ConfigError)) throw thrown;
    const { message } = thrown;
    const digest = await digestMapper(modulePath);
    return {
      identity: { name: nameOf(modulePath), version: VERSION_DEFAULT, digest },
      summary: message,
      modulePath,
      checkSettings: () => Promise.resolve(message),
      settingsSchema: {},
      sourceZone: false,
    };
  }
}
