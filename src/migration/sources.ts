/** From patterns to drops that are looked through once: a local folder for each pattern's fixed part, or a folder of a configured server. */
import { posix } from "node:path";
import { type DropOptions, localOptions } from "../drops/options.ts";
import { ConfigError } from "../support/errors.ts";
import { isUrl } from "./order.ts";

const MAGIC = /[*?[\]{}!]/;

/** Drops whose files are the history. Names do not depend on the order of the patterns, since the ledger knows files by them. */
export function historyDrops(
  patterns: readonly string[],
  configured: readonly DropOptions[],
): readonly DropOptions[] {
  const local = Map.groupBy(
    patterns.filter((pattern) => !isUrl(pattern)).map(splitPattern),
    ({ folder }) => folder,
  );
  const drops: DropOptions[] = [...local].map(([folder, parts]) => {
    const include = parts.map(({ rest }) => rest);
    return localOptions.parse({
      kind: "local",
      name: dropName(folder),
      path: folder,
      watch: false,
      ...takenOnce(include),
    });
  });
  for (const pattern of patterns.filter(isUrl)) drops.push(remoteDrop(pattern, configured));
  return drops;
}

/** The folder before the first wildcard, and what follows; `/data/x.csv` is `x.csv` in `/data`. */
export function splitPattern(pattern: string): { readonly folder: string; readonly rest: string } {
  const parts = pattern.split("/");
  const magic = parts.findIndex((part) => MAGIC.test(part));
  const at = magic === -1 ? parts.length - 1 : magic;
  const rest = parts.slice(at).join("/");
  return { folder: parts.slice(0, at).join("/") || "/", rest: rest === "" ? "**" : rest };
}

function takenOnce(include: readonly string[]) {
  return {
    include,
    recursive: include.some((pattern) => pattern.includes("/") || pattern.includes("**")),
    temporaryNames: [],
    // History lies still: what is there is complete.
    settle: { observations: 1, interval: "0s" },
    finish: { delivered: "leave", quarantined: "leave", unmatched: "leave", duplicate: "leave" },
    every: "1h",
    order: "name",
    perPollMax: 1_000_000,
  };
}

/** Letters and digits of the place, with what keeps two of them apart. */
function dropName(place: string): string {
  const words = place.replace(/[^A-Za-z0-9]+/g, "-").replace(/^-+|-+$/g, "");
  return words.slice(-50) || "root";
}

function remoteDrop(pattern: string, configured: readonly DropOptions[]): DropOptions {
  const url = new URL(pattern);
  const kind = url.protocol === "sftp:" ? "sftp" : "ftp";
  const server = configured.find(
    (drop) =>
      drop.kind === kind &&
      drop.host === url.hostname &&
      (url.port === "" || drop.port === Number(url.port)) &&
      (url.username === "" || drop.username === decodeURIComponent(url.username)),
  );
  if (server === undefined)
    throw new ConfigError("HG-MIGR-001", {
      operation: "migrate",
      subject: pattern.replace(/:[^:@/]*@/, ":…@"),
      message: `no drop of the configuration is at ${kind}://${url.host}`,
      hint: "Add a drop of that server to the configuration: its login, and how the server is known, are taken from there.",
    });
  const { folder, rest } = splitPattern(decodeURIComponent(url.pathname));
  return {
    ...server,
    name: dropName(`${url.hostname}-${folder}`),
    path: folder === "/" && posix.isAbsolute(url.pathname) ? "/" : folder,
    ...localOptions
      .pick({
        include: true,
        recursive: true,
        temporaryNames: true,
        settle: true,
        finish: true,
        every: true,
        order: true,
        perPollMax: true,
        initial: true,
      })
      .parse({ ...takenOnce([rest]), initial: "process" }),
    cron: undefined,
  } as DropOptions;
}
