/** Loads a mapper's module as it is on disk: a changed mapper is another module, beside the old one. */
import { registerHooks } from "node:module";
import { extname } from "node:path";
import { pathToFileURL } from "node:url";
import { ConfigError, wordsOf } from "../support/errors.ts";
import type { Mapper } from "./mapper.ts";
import { nameOf } from "./mapper-files.ts";

const CONTRACT = "headgate/mapper";
const contractUrl = new URL(`./mapper${extname(import.meta.url)}`, import.meta.url).href;
let hooked = false;

/**
 * Mappers outside this package find `headgate/mapper` too, without an installation of their own; and the files that a mapper
 * imports by relative path are loaded anew together with it.
 */
function hookResolution(): void {
  if (hooked) return;
  hooked = true;
  registerHooks({
    resolve(specifier, context, next) {
      if (specifier === CONTRACT) return { url: contractUrl, shortCircuit: true };
      const resolved = next(specifier, context);
      const version = /\?v=[0-9a-f]{64}$/.exec(context.parentURL ?? "")?.[0];
      const own = version !== undefined && /^\.{1,2}\//.test(specifier) && !resolved.url.includes("?");
      return own ? { ...resolved, url: resolved.url + version } : resolved;
    },
  });
}

/** The mapper of a module. Throws a `ConfigError` that says why it is none. */
export async function loadMapper(modulePath: string, digest: string): Promise<Mapper> {
  hookResolution();
  let loaded: unknown;
  try {
    loaded = await import(`${pathToFileURL(modulePath).href}?v=${digest}`);
  } catch (cause) {
    throw refusal(modulePath, wordsOf(cause), cause);
  }
  const mapper = (loaded as { readonly default?: unknown }).default;
  if (!isMapper(mapper)) throw refusal(modulePath, "its default export is not made by defineMapper");
  const expected = nameOf(modulePath);
  if (mapper.name !== expected)
    throw refusal(modulePath, `it calls itself "${mapper.name}", but its place says "${expected}"`);
  return mapper;
}

function isMapper(value: unknown): value is Mapper {
  return (
    typeof value === "object" &&
    value !== null &&
    "isHeadgateMapper" in value &&
    "map" in value &&
    typeof value.map === "function" &&
    "name" in value &&
    typeof value.name === "string"
  );
}

function refusal(modulePath: string, why: string, cause?: unknown): ConfigError {
  return new ConfigError("HG-MAP-003", {
    operation: "load mapper",
    subject: modulePath,
    message: `the mapper ${nameOf(modulePath)} cannot be loaded: ${why}`,
    cause,
  });
}
