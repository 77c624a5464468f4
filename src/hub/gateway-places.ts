/** Folders of a hub: that of its stored files, and where its gateway keeps its ledger and its spool. */
import type { HubOptions } from "./options.ts";

/** Why a hub takes no files (`storedFilesFolder`). */
export const NO_PLACE =
  "with a PostgreSQL store, set `files.path` to a folder that every hub of the store reaches, or with `kind: s3` " +
  "`files.local` to one of this hub alone";
/** PostgreSQL cuts longer names. */
const NAME_MAX = 63;
const SUFFIX = "_gateway";

/**
 * Of the stored files, or of those that are being received where the files are in object storage. Null when it has to
 * be named, and is not: hubs that share a database.
 */
export function storedFilesFolder({ store, files }: HubOptions): string | null {
  const named = files.kind === "folder" ? files.path : files.local;
  if (named !== undefined) return named;
  if (store.kind !== "sqlite") return null;
  return files.kind === "folder" ? `${store.path}.files` : `${store.path}.receiving`;
}

/**
 * `node`: the name of this hub among those that share its store, which `isShared` says. `ledger`: as in the gateway's
 * configuration.
 */
export function gatewayPlaces(options: HubOptions, node: string) {
  const { store, files } = options;
  if (store.kind === "sqlite") {
    const ledger = { kind: "sqlite", path: `${store.path}.gateway` };
    return { ledger, spool: files.spool ?? `${store.path}.spool`, isShared: false };
  }
  const schema = `${store.schema.slice(0, NAME_MAX - SUFFIX.length)}${SUFFIX}`;
  const ledger = { kind: "postgres", url: store.url, schema, node };
  // The hubs share the folder of the files, and not this one.
  return { ledger, spool: files.spool ?? `${storedFilesFolder(options)}.spool-${node}`, isShared: true };
}
