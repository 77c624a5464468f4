/** The hub's configuration file. */
import { dirname, isAbsolute, resolve } from "node:path";
import { type ParsedDocument, readDocument, requireKind } from "#core/config/document.ts";
import { generatedAs } from "#core/config/json-schema.ts";
import { type HubOptions, hubOptions } from "./options.ts";

const documented = generatedAs(hubOptions, "hub.schema.json");

/**
 * Loads, validates and freezes the options; paths are relative to the file's own folder. Throws
 * `ConfigError`.
 */
export function loadHubOptions(path: string): HubOptions {
  return hubOptionsOf(readDocument(path), path);
}

/** As `loadHubOptions`, of a file that was read. */
export function hubOptionsOf(document: ParsedDocument, path: string): HubOptions {
  requireKind("hub", document, path);
  const options = document.validated(documented);
  const { store, files, transfer, mail } = options;
  const at = (own: string) => (isAbsolute(own) ? own : resolve(dirname(resolve(path)), own));
  return Object.freeze({
    ...options,
    store: store.kind === "sqlite" ? { ...store, path: at(store.path) } : store,
    files: filesAt(files, at),
    ...(mail.outbox === undefined ? {} : { mail: { ...mail, outbox: at(mail.outbox) } }),
    ...(transfer === undefined ? {} : { transfer: transferAt(transfer, at) }),
  });
}

function filesAt(files: HubOptions["files"], at: (own: string) => string): HubOptions["files"] {
  const spool = files.spool === undefined ? {} : { spool: at(files.spool) };
  const common = { ...spool, mappers: files.mappers.map(at) };
  if (files.kind === "s3")
    return { ...files, ...common, ...(files.local === undefined ? {} : { local: at(files.local) }) };
  return { ...files, ...common, ...(files.path === undefined ? {} : { path: at(files.path) }) };
}

function transferAt(transfer: NonNullable<HubOptions["transfer"]>, at: (own: string) => string) {
  const { path, sftp, ftp } = transfer;
  return {
    ...transfer,
    ...(path === undefined ? {} : { path: at(path) }),
    ...(ftp?.tls === undefined
      ? {}
      : { ftp: { ...ftp, tls: { ...ftp.tls, cert: at(ftp.tls.cert), key: at(ftp.tls.key) } } }),
    ...(sftp === undefined ? {} : { sftp: { ...sftp, hostKeys: sftp.hostKeys?.map(at) } }),
  };
}
