/** The hub's configuration file. */
import { dirname, isAbsolute, resolve } from "node:path";
import { type HubOptions, hubOptions } from "../hub/options.ts";
import { loadDocument } from "./document.ts";

/**
 * Loads, validates and freezes the options; paths are relative to the file's own folder. Throws
 * `ConfigError`.
 */
export function loadHubOptions(path: string): HubOptions {
  const options = loadDocument(path, hubOptions);
  const { store, files } = options;
  const at = (own: string) => (isAbsolute(own) ? own : resolve(dirname(resolve(path)), own));
  return Object.freeze({
    ...options,
    store: store.kind === "sqlite" ? { ...store, path: at(store.path) } : store,
    files: files.path === undefined ? files : { ...files, path: at(files.path) },
  });
}
