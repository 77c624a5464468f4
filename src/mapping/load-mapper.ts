/** Loads a mapper's module as it is on disk: a changed mapper is a new module beside the old one. */
import { readFileSync } from "node:fs";
import { type ResolveFnOutput, registerHooks } from "node:module";
import { extname } from "node:path";
import { pathToFileURL } from "node:url";
import { ConfigError, wordsOf } from "#core/errors.ts";
import { faultyLine } from "./author-frames.ts";
import { CONFLICTS_SETTING, conflictRule } from "./conflicts.ts";
import type { Mapper } from "./mapper.ts";
import { nameOf } from "./mapper-files.ts";
import { COMMON_SETTINGS, settingNames, ZONE_SETTING } from "./settings.ts";

/** A package name: not a path, an address, or a module of Node. */
const PACKAGE = /^(?![./]|[a-z]+:)/;
const CONTRACT = "headgate/mapper";
const contractUrl = new URL(`./mapper${extname(import.meta.url)}`, import.meta.url).href;
let hooked = false;
/** Original locations of copied modules, by the digest in their address: packages are resolved from there. */
const origins = new Map<string, string>();

/**
 * Lets mappers outside this package resolve `headgate/mapper` without an installation of their own, and loads the files
 * that a mapper imports by relative path together with it.
 */
function hookResolution(): void {
  if (hooked) return;
  hooked = true;
  registerHooks({
    resolve(specifier, context, next) {
      if (specifier === CONTRACT) return { url: contractUrl, shortCircuit: true };
      const version = /\?v=[0-9a-f]{64}$/.exec(context.parentURL ?? "")?.[0];
      const origin = PACKAGE.test(specifier) ? origins.get(version ?? "") : undefined;
      const resolved = next(specifier, origin === undefined ? context : { ...context, parentURL: origin });
      const own = version !== undefined && /^\.{1,2}\//.test(specifier) && !resolved.url.includes("?");
      return withOwnFormat(own ? { ...resolved, url: resolved.url + version } : resolved);
    },
  });
}

const MODULE_OF: Readonly<Record<string, string>> = {
  commonjs: "module",
  "commonjs-typescript": "module-typescript",
};
const MODULE_SYNTAX = /^[ \t]*(?:import[\s{"'*]|export[\s{*])/m;

/**
 * The file extension decides the module format, also where a package.json above says `"type": "commonjs"`: that file
 * belongs to the site, and applies neither to the mapper nor to the copy of it that a run is bound to.
 */
function withOwnFormat(resolved: ResolveFnOutput): ResolveFnOutput {
  const { url } = resolved;
  const format = MODULE_OF[resolved.format ?? ""];
  if (format === undefined || !/\.[jt]s\?v=[0-9a-f]{64}$/.test(url)) return resolved;
  try {
    return MODULE_SYNTAX.test(readFileSync(new URL(url.replace(/\?.*$/, "")), "utf8"))
      ? { ...resolved, format }
      : resolved;
  } catch {
    // Loading the file reports the fault.
    return resolved;
  }
}

/**
 * The mapper of a module, with the origin of a copied module. Throws a `ConfigError` that says why the module is not a
 * mapper.
 */
export async function loadMapper(modulePath: string, digest: string, origin?: string): Promise<Mapper> {
  hookResolution();
  if (origin !== undefined) origins.set(`?v=${digest}`, pathToFileURL(origin).href);
  let loaded: unknown;
  try {
    loaded = await import(`${pathToFileURL(modulePath).href}?v=${digest}`);
  } catch (cause) {
    const line = faultyLine(cause);
    throw refusal(modulePath, `${wordsOf(cause)}${line === undefined ? "" : ` (${line})`}`, cause);
  }
  const mapper = (loaded as { readonly default?: unknown }).default;
  if (!isMapper(mapper)) throw refusal(modulePath, "its default export is not made by defineMapper");
  const expected = nameOf(modulePath);
  if (mapper.name !== expected)
    throw refusal(modulePath, `its name is "${mapper.name}", but its path says "${expected}"`);
  const { conflicts } = mapper;
  if (conflicts !== undefined && !conflictRule.safeParse(conflicts).success)
    throw refusal(modulePath, `its conflicts is none of ${conflictRule.options.join(", ")}`);
  if (mapper.sourceZone === true && !settingNames(mapper.settings).includes(ZONE_SETTING))
    throw refusal(modulePath, `it has sourceZone, but its settings have no "${ZONE_SETTING}"`);
  const taken = COMMON_SETTINGS.find((name) => settingNames(mapper.settings).includes(name));
  if (taken !== undefined)
    throw refusal(
      modulePath,
      `its settings have "${taken}", which every mapper has already: use another name` +
        (taken === CONFLICTS_SETTING ? ", or set the field conflicts of defineMapper" : ""),
    );
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
