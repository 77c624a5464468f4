/**
 * The migrations of a gateway's console: each is planned and carried out by the command, in a process of its own, as if
 * the person had given it in a shell. What it does stands in the folder of the migration.
 */
import { type ChildProcess, type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { createReadStream, existsSync, realpathSync } from "node:fs";
import { extname, isAbsolute, join, resolve, sep } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { type ErrorCode, RejectedError } from "#core/errors.ts";
import type { MigrationControl } from "#gateway/console/migrations.ts";
import { migrationsOf } from "#gateway/migration/overview.ts";
import { splitPattern } from "#gateway/migration/plan/sources.ts";
import { findMigration } from "#gateway/migration/report/reports.ts";
import type { DownloadedFile } from "#gateway/operations/api/endpoint.ts";
import type { PlanRequest, StartRequest, UndoPreview } from "#gateway/operations/api/migrations.ts";
import { pauseMigration } from "./pause.ts";
import type { asJson } from "./survey-table.ts";

/** The line by which a command says that its work has begun. */
const BEGUN = /^(?:migration|plan) ([0-9a-f]{10}): /;
const VARIABLES_MAX = 200;

export class MigrationProcesses implements MigrationControl {
  readonly #configFile: string;
  readonly #running = new Set<ChildProcess>();
  readonly list = (spool: string) => migrationsOf(spool);

  constructor(configFile: string) {
    this.#configFile = configFile;
  }

  async plan(request: PlanRequest, by: string, histories: readonly string[]): Promise<string> {
    for (const pattern of request.patterns) assertBelow(pattern, histories);
    const { mapper, settings, service, rows, versionTag } = request;
    return await this.#begin([
      ...[
        "migrate",
        ...request.patterns,
        "--dry-run",
        "--keep",
        `--by=${by}`,
        `--settings=${JSON.stringify(settings)}`,
      ],
      ...(mapper === null ? [] : [`--mapper=${mapper}`]),
      ...(service === null ? [] : [`--service=${service}`]),
      ...(versionTag === null ? [] : [`--version-tag=${versionTag}`]),
      ...(rows === "lenient" ? ["--lenient"] : []),
    ]);
  }

  async start(spool: string, id: string, request: StartRequest, by: string): Promise<string> {
    const known = await findMigration(spool, id);
    const { between, rate, pauseOnErrors, verify, onChange, why } = request;
    const limit = (name: string, value: string) => `--${name}=${value === "" ? "none" : value}`;
    await this.#begin([
      ...["migrate", "resume", known.id, `--by=${by}`, `--reason=${why}`, `--on-change=${onChange}`],
      ...[limit("between", between), limit("rate", rate), limit("pause-on-errors", pauseOnErrors)],
      verify ? "--verify" : "--no-verify",
    ]);
    return `migration ${known.id} runs`;
  }

  pause(spool: string, id: string, pause: { readonly by: string; readonly why: string }): Promise<void> {
    return pauseMigration(spool, id, pause);
  }

  async previewUndo(id: string, signal: AbortSignal): Promise<UndoPreview> {
    const child = this.#spawn(["migrate", "undo", id, "--dry-run"]);
    const stop = () => void child.kill("SIGTERM");
    signal.addEventListener("abort", stop, { once: true });
    try {
      const { stdout, stderr } = child;
      const [shown, fault] = await Promise.all([text(stdout), text(stderr)]);
      // It ends with 1 where something of the migration cannot be removed.
      if (shown.trim() === "") throw faultOf(fault.split("\n"), id);
      return previewOf(JSON.parse(shown) as UndoShown);
    } finally {
      signal.removeEventListener("abort", stop);
    }
  }

  async report(spool: string, id: string): Promise<DownloadedFile | null> {
    const { folder, id: whole } = await findMigration(spool, id);
    const path = join(folder, "report.html");
    return existsSync(path) ? { name: `migration-${whole}.html`, content: createReadStream(path) } : null;
  }

  /** Running batches end, and the same migrations resume later. */
  async close(): Promise<void> {
    const ended = [...this.#running].map((child) => once(child, "exit"));
    for (const child of this.#running) child.kill("SIGTERM");
    await Promise.all(ended);
  }

  /** Returns the id of the migration once its work has begun. Throws the fault of the command. */
  async #begin(args: readonly string[]): Promise<string> {
    const child = this.#spawn(args);
    child.stdout.resume();
    const begun = Promise.withResolvers<string>();
    const lines: string[] = [];
    createInterface({ input: child.stderr })
      .on("line", (line) => {
        const id = BEGUN.exec(line)?.[1];
        if (id !== undefined) begun.resolve(id);
        else if (lines.length < LINES_MAX) lines.push(line);
      })
      .once("close", () => begun.reject(faultOf(lines, args[1] ?? "")));
    return await begun.promise;
  }

  #spawn(args: readonly string[]): ChildProcessByStdio<null, Readable, Readable> {
    const main = join(import.meta.dirname, `../../../main${extname(import.meta.filename)}`);
    const all = [main, ...args, "--json", "-c", this.#configFile];
    const child = spawn(process.execPath, all, { stdio: ["ignore", "pipe", "pipe"] });
    this.#running.add(child);
    child.once("exit", () => this.#running.delete(child));
    return child;
  }
}

const LINES_MAX = 100;

/** Files of this machine alone: servers hold more than histories. */
function assertBelow(pattern: string, histories: readonly string[]): void {
  const { folder } = splitPattern(resolve(pattern));
  const isBelow = (history: string) => {
    if (!existsSync(folder) || !existsSync(history)) return false;
    const [place, root] = [realpathSync(folder), realpathSync(history)];
    return place === root || place.startsWith(root.endsWith(sep) ? root : `${root}${sep}`);
  };
  if (isAbsolute(pattern) && histories.some(isBelow)) return;
  const known = histories.length === 0 ? "there is none" : `there are ${histories.join(", ")}`;
  throw new RejectedError("HG-MIGR-007", {
    operation: "plan migration",
    subject: pattern,
    message: `${pattern} does not name files below a folder of histories: ${known}`,
  });
}

/** As `printError` writes it with `--json`. */
function faultOf(lines: readonly string[], subject: string): RejectedError {
  const line = lines.findLast((one) => one.startsWith('{"error":'));
  if (line === undefined)
    return new RejectedError("HG-MIGR-006", {
      operation: "start migration",
      subject,
      message: `the command ended before it began: ${lines.at(-1) ?? "without a word"}`,
    });
  const { error } = JSON.parse(line) as { readonly error: Readonly<Record<string, string>> };
  return new RejectedError((error["code"] ?? "HG-MIGR-006") as ErrorCode, {
    operation: error["operation"] ?? "start migration",
    subject: error["subject"] ?? subject,
    message: error["message"] ?? "",
    ...(error["hint"] === undefined ? {} : { hint: error["hint"] }),
  });
}

interface UndoShown {
  /** Absent where nothing was delivered. */
  readonly services?: readonly ReturnType<typeof asJson>[];
}

function previewOf({ services = [] }: UndoShown): UndoPreview {
  const all = services.flatMap(({ variables }) => variables);
  const sum = (of: (one: (typeof all)[number]) => number) => all.reduce((total, one) => total + of(one), 0);
  return {
    points: sum(({ points }) => points),
    versions: sum(({ versions }) => versions),
    variables: all.slice(0, VARIABLES_MAX).map(({ target, variableId, from, to, points, stay }) => ({
      ...{ target, variableId, from, to, points },
      stay: stay.others + stay.changed + stay.unsure,
    })),
    count: all.length,
    absent: services.reduce((total, { absent }) => total + absent, 0),
    gone: services.flatMap(({ gone }) => gone),
  };
}
