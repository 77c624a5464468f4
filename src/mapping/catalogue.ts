/** The mappers that triggers can name: those of the configured folders, then those that come with Headgate. */
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { ConfigError } from "../support/errors.ts";
import { loadMapper, nameOf } from "./load-mapper.ts";
import type { Mapper } from "./mapper.ts";
import { digestMapper, locateMapper, mapperNames } from "./mapper-files.ts";
import type { CatalogueEntry, MapperCatalogue } from "./mapping.ts";
import { settingsFault } from "./settings.ts";

/** The folder of the mappers that come with Headgate. */
export const BUNDLED_FOLDER = fileURLToPath(new URL("../../mappers", import.meta.url));

const VERSION_DEFAULT = "0.0.0";

/** Folders are absolute paths; the first that has a name wins. */
export function createCatalogue(folders: readonly string[]): MapperCatalogue {
  const places = searchFolders(folders);
  const known = new Map<string, CatalogueEntry>();

  async function entryOf(modulePath: string): Promise<CatalogueEntry> {
    const digest = await digestMapper(modulePath);
    const key = `${modulePath}?${digest}`;
    const entry = known.get(key) ?? describe(await loadMapper(modulePath, digest), modulePath, digest);
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
  };
}

/** The configured folders and, last, the bundled one. */
export function searchFolders(folders: readonly string[]): readonly string[] {
  return [...new Set([...folders, BUNDLED_FOLDER])];
}

function describe(mapper: Mapper, modulePath: string, digest: string): CatalogueEntry {
  return {
    identity: { name: mapper.name, version: mapper.version ?? VERSION_DEFAULT, digest },
    summary: mapper.summary,
    modulePath,
    checkSettings: (settings) => settingsFault(mapper, settings),
    settingsSchema: z.toJSONSchema(mapper.settings ?? z.strictObject({}), {
      io: "input",
      unrepresentable: "any",
    }),
  };
}

/** A mapper that cannot be loaded is listed with the reason, so that one of them hides no other. */
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
      checkSettings: () => message,
      settingsSchema: {},
    };
  }
}
