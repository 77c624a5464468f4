/** The hub's configuration file. */
import { dirname, isAbsolute, resolve } from "node:path";
import { type HubOptions, hubOptions } from "../hub/options.ts";
import { loadDocument } from "./document.ts";

/**
 * Loads, validates and freezes the options; the store's path is relative to the file's own folder. Throws
 * `ConfigError`.
 */
export function loadHubOptions(path: string): HubOptions {
  const options = loadDocument(path, hubOptions);
  const { store } = options;
  if (store.kind !== "sqlite") return Object.freeze(options);
  const at = isAbsolute(store.path) ? store.path : resolve(dirname(resolve(path)), store.path);
  return Object.freeze({ ...options, store: { ...store, path: at } });
}
