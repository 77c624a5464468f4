/** Checks a request before any file is read: otherwise each file would repeat the fault, or it would stay unnoticed. */
import { statSync } from "node:fs";
import { posix } from "node:path";
import { ConfigError, invalidOption } from "#core/errors.ts";
import { createCatalogue } from "#mapping/workers/catalogue.ts";
import type { GatewayConfig } from "../../config.ts";
import { isUrl, type MigrationRequest } from "../request.ts";
import type { HistoryFile } from "./history-files.ts";
import { historyDrops, splitPattern } from "./sources.ts";

/** Throws `ConfigError` when the places, the service, the mapper or its settings cannot be right. */
export async function assertRequestFits(request: MigrationRequest, config: GatewayConfig): Promise<void> {
  for (const pattern of request.patterns) {
    if (isUrl(pattern)) assertHasNoSecret(pattern);
    else assertIsPlace(pattern);
  }
  assertServiceFits(
    request,
    config.services.map(({ name }) => name),
  );
  if (request.mapper !== null) await assertMapperFits(request.mapper, request.settings, config);
}

/** The request is stored, printed and put into reports, so that it must not hold a secret. */
function assertHasNoSecret(pattern: string): void {
  const url = new URL(pattern);
  if (url.password === "") return;
  url.password = "";
  throw new ConfigError("HG-CLI-001", {
    operation: "migrate",
    subject: url.href,
    message: "a password in the address would be stored, and shown in the report",
    hint: "Leave it out: the login is taken from the configured drop of this server.",
  });
}

/** A pattern for files of this machine. */
function assertIsPlace(pattern: string): void {
  const facts = { operation: "migrate", subject: pattern };
  const [, scheme] = /\/([A-Za-z][A-Za-z0-9+.-]+):\/[^/]/.exec(pattern) ?? [];
  const { folder } = splitPattern(pattern);
  if (isFolder(pattern))
    throw new ConfigError("HG-CLI-001", {
      ...facts,
      message: `${pattern} is a folder, not a file`,
      hint: `Name the files in it, in quotes: '${posix.join(pattern, "**/*")}' are all of them.`,
    });
  if (isFolder(folder)) return;
  if (scheme !== undefined)
    throw new ConfigError("HG-CLI-001", {
      ...facts,
      message: `${scheme}:// is not a supported scheme`,
      hint: "Name files on this machine, or on a configured server by sftp:// or ftp://.",
    });
  throw new ConfigError("HG-CLI-001", {
    ...facts,
    message: `there is no folder ${folder}`,
    hint: "Correct the pattern, or mount its file system; relative patterns begin in the current folder.",
  });
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

function assertServiceFits({ service }: MigrationRequest, names: readonly string[]): void {
  const known = names.join(", ");
  if (service === null && names.length > 1)
    throw invalidOption("--service", `it is missing: there are several services, name one of ${known}`);
  if (service !== null && !names.includes(service))
    throw invalidOption(
      "--service",
      `there is no service ${service}; there ${names.length > 1 ? "are" : "is"} ${known}`,
    );
}

async function assertMapperFits(
  name: string,
  settings: MigrationRequest["settings"],
  config: GatewayConfig,
): Promise<void> {
  const catalogue = createCatalogue(config.mappers.folders);
  try {
    const mapper = await catalogue.find(name);
    if (mapper === null) {
      const known = (await catalogue.list()).map(({ identity }) => identity.name);
      throw invalidOption("--mapper", `there is no mapper ${name}; there are ${known.join(", ")}`);
    }
    const fault = await mapper.checkSettings(settings);
    if (fault !== null) throw invalidOption("--settings", fault);
  } finally {
    await catalogue.close();
  }
}

/** One line for each pattern without a match, where others match. */
export function emptyPatterns(
  { patterns }: Pick<MigrationRequest, "patterns">,
  { drops }: Pick<GatewayConfig, "drops">,
  files: readonly HistoryFile[],
): readonly string[] {
  return patterns.flatMap((pattern) => {
    const names = new Set(historyDrops([pattern], drops).map(({ name }) => name));
    const { rest } = splitPattern(isUrl(pattern) ? decodeURIComponent(new URL(pattern).pathname) : pattern);
    const isFound = files.some(({ drop, path }) => names.has(drop) && posix.matchesGlob(path, rest));
    return isFound ? [] : [`no file fits ${pattern}`];
  });
}
