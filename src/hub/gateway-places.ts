/** Where the gateway of a hub keeps its ledger and its spool: beside the store. */
import type { HubOptions } from "./options.ts";

/** PostgreSQL cuts longer names. */
const NAME_MAX = 63;
const SUFFIX = "_gateway";

/** `node`: the name of this hub among those that share its store. `ledger`: as in the gateway's configuration. */
export function gatewayPlaces({ store, files }: HubOptions, node: string) {
  if (store.kind === "sqlite") {
    const ledger = { kind: "sqlite", path: `${store.path}.gateway` };
    return { ledger, spool: files.spool ?? `${store.path}.spool` };
  }
  const schema = `${store.schema.slice(0, NAME_MAX - SUFFIX.length)}${SUFFIX}`;
  const ledger = { kind: "postgres", url: store.url, schema, node };
  // The hubs share the folder of the files, and not this one.
  return { ledger, spool: files.spool ?? `${files.path}.spool-${node}` };
}
