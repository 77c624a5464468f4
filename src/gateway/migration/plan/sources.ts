/**
 * From patterns to drops that are listed once: a local folder for the fixed part of each pattern, or a folder of a
 * configured server.
 */
import { createHash } from "node:crypto";
import { posix } from "node:path";
import { ConfigError } from "#core/errors.ts";
import { type DropOptions, localOptions } from "../../drops/options.ts";
import { isUrl } from "../request.ts";

const MAGIC = /[*?[\]{}!]/;

/**
 * Drops whose files are the history. Names do not depend on the order of the patterns, since they identify files in
 * the ledger.
 */
export function historyDrops(patterns: readonly string[], configured: readonly DropOptions[]): readonly DropOptions[] {
  const local = Map.groupBy(patterns.filter((pattern) => !isUrl(pattern)).map(splitPattern), ({ folder }) => folder);
  const drops: DropOptions[] = [...local].map(([folder, parts]) => {
    const include = parts.map(({ rest }) => rest);
    return localOptions.parse({
      kind: "local",
      name: dropName(folder),
      path: folder,
      watch: false,
      ...takenOnce(include),
      exclude: takenBelow(folder, local),
    });
  });
  for (const pattern of patterns.filter(isUrl)) {
    const drop = remoteDrop(pattern, configured);
    const same = drops.findIndex(({ name }) => name === drop.name);
    const before = drops[same];
    // One listing of a folder for all of its patterns: two drops of one name would each take the files of the other
    // for removed.
    if (before === undefined) drops.push(drop);
    else
      drops[same] = {
        ...before,
        include: [...before.include, ...drop.include],
        recursive: before.recursive || drop.recursive,
      };
  }
  return drops;
}

/** The folder before the first wildcard, and the remaining pattern; `/data/x.csv` is `x.csv` in `/data`. */
export function splitPattern(pattern: string): { readonly folder: string; readonly rest: string } {
  const parts = pattern.split("/");
  const magic = parts.findIndex((part) => MAGIC.test(part));
  const at = magic === -1 ? parts.length - 1 : magic;
  const rest = parts.slice(at).join("/");
  return { folder: parts.slice(0, at).join("/") || "/", rest: rest === "" ? "**" : rest };
}

/** The files that patterns of folders below take, so that no file is found twice. */
function takenBelow(folder: string, all: ReadonlyMap<string, readonly { readonly rest: string }[]>): readonly string[] {
  const inside = folder === "/" ? folder : `${folder}/`;
  return [...all].flatMap(([other, parts]) =>
    other !== folder && other.startsWith(inside)
      ? parts.map(({ rest }) => `${other.slice(inside.length)}/${rest}`)
      : [],
  );
}

function takenOnce(include: readonly string[]) {
  return {
    include,
    recursive: include.some((pattern) => pattern.includes("/") || pattern.includes("**")),
    temporaryNames: [],
    // A history does not change: its files are complete.
    settle: { observations: 1, interval: "0s" },
    finish: { delivered: "leave", quarantined: "leave", unmatched: "leave", duplicate: "leave" },
    every: "1h",
    order: "name",
    perPollMax: 1_000_000,
  };
}

const NAME_MAX = 50;

/** Letters and digits of the place; where it has other characters, with a digest that distinguishes such places. */
function dropName(place: string): string {
  const words = place.replace(/[^A-Za-z0-9]+/g, "-").replace(/^-+|-+$/g, "");
  if (words.length <= NAME_MAX && /^[A-Za-z0-9/]*$/.test(place)) return words || "root";
  const digest = createHash("sha256").update(place).digest("hex").slice(0, 8);
  return [words.slice(digest.length + 1 - NAME_MAX), digest].filter((part) => part !== "").join("-");
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
  if (server === undefined || !("host" in server))
    throw new ConfigError("HG-MIGR-001", {
      operation: "migrate",
      subject: pattern.replace(/:[^:@/]*@/, ":…@"),
      message: `no drop of the configuration is at ${kind}://${url.host}`,
      hint:
        "Add a drop of that server to the configuration: its login and its host key or certificate are taken " +
        "from there.",
    });
  const { folder, rest } = splitPattern(decodeURIComponent(url.pathname));
  return {
    ...server,
    name: dropName(`${kind}://${server.username}@${url.hostname}:${server.port ?? ""}${folder}`),
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
