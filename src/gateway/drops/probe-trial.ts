/**
 * Tries the operations that `headgate check` needs at a drop, with a file of its own. No listing returns its
 * name (`OWN_PREFIX`), not even to a running gateway, and the name is the same at every check of this drop
 * from this machine, so that the next check removes the files of one that was killed.
 */
import { createHash } from "node:crypto";
import { hostname } from "node:os";
import { posix } from "node:path";
import { type ClockSeen, systemClock } from "#core/clock.ts";
import { wordsOf } from "#core/errors.ts";
import type { FinishRule } from "../model.ts";
import type { ProbeFinding } from "./drop.ts";
import type { DropOptions } from "./options.ts";
import { OWN_PREFIX } from "./paths.ts";

/**
 * The operations of a kind of drop for a trial. Paths are relative to its root; every call throws the error
 * of its server or folder.
 */
export interface TrialFiles {
  write(path: string, content: string): Promise<void>;
  /** By the server's clock, in Unix milliseconds; null when it has no time of that precision. */
  modified(path: string): Promise<{ readonly atMs: number; readonly precisionMs: number } | null>;
  exists(path: string): Promise<boolean>;
  isFolder(path: string): Promise<boolean>;
  makeFolder(path: string): Promise<void>;
  removeFolder(path: string): Promise<void>;
  move(from: string, to: string): Promise<void>;
  remove(path: string): Promise<void>;
  /** Whether an error means that the operation is not permitted, whatever the file. */
  isRefusal(thrown: unknown): boolean;
}

export interface TrialFacts {
  readonly options: Pick<DropOptions, "name" | "finish">;
  /** Further identity of the drop, such as its folder. */
  readonly place: string;
  /** The owner of the rights, in words. */
  readonly who: string;
  files(signal: AbortSignal): TrialFiles;
}

export interface TrialResult {
  readonly findings: readonly ProbeFinding[];
  readonly clock: ClockSeen | null;
}

const CONTENT = "A trial of `headgate check`. It may be deleted.\n";
/** Milliseconds for the removal of the trial's files, also after the check was cancelled. */
const CLEANING_MS = 15_000;

/** Runs a trial, and reports files that could not be removed. */
export async function probeRights(facts: TrialFacts, signal: AbortSignal): Promise<TrialResult> {
  const trial = new Trial(facts);
  let result: TrialResult;
  let left: readonly string[] = [];
  try {
    result = await trial.run(facts.files(signal));
  } finally {
    left = await trial.clean();
  }
  if (left.length === 0) return result;
  const finding: ProbeFinding = {
    level: "failed",
    about: "rights",
    what: `${left.join(" and ")} of this check could not be removed`,
    hint: "Remove it by hand. The gateway never picks it up.",
  };
  return { ...result, findings: [...result.findings, finding] };
}

class Trial {
  readonly #facts: TrialFacts;
  readonly #file: string;
  readonly #other: string;
  readonly #folder: string;
  /** Places where files of the trial may be, the latest last. */
  readonly #made: { readonly path: string; readonly folder: boolean }[] = [];
  readonly #findings: ProbeFinding[] = [];

  constructor(facts: TrialFacts) {
    this.#facts = facts;
    const seed = `${hostname()}\0${facts.options.name}\0${facts.place}`;
    const stem = `${OWN_PREFIX}check-${createHash("sha256").update(seed).digest("hex").slice(0, 12)}`;
    this.#file = `${stem}.tmp`;
    this.#other = `${stem}-renamed.tmp`;
    this.#folder = `${stem}.folder`;
  }

  async run(files: TrialFiles): Promise<TrialResult> {
    // A file that cannot be removed again is not created.
    const deleting = await this.#refusal(files, () => files.remove(this.#file));
    if (deleting !== null) {
      const renaming = await this.#refusal(files, () => files.move(this.#file, this.#other));
      if (renaming === null) this.#sayUntried(deleting);
      else this.#say("renaming and deleting", deleting, needRename(this.#rules()));
      return { findings: this.#findings, clock: null };
    }
    await this.#removeLeftovers(files);
    const beforeMs = systemClock.now().epochMilliseconds;
    this.#made.push({ path: this.#file, folder: false });
    try {
      await files.write(this.#file, CONTENT);
    } catch (thrown) {
      this.#say("writing a file", wordsOf(thrown), needRename(this.#rules()));
      return { findings: this.#findings, clock: null };
    }
    const afterMs = systemClock.now().epochMilliseconds;
    const modified = await files.modified(this.#file);
    const clock =
      modified === null ? null : { serverMs: modified.atMs, precisionMs: modified.precisionMs, beforeMs, afterMs };
    await this.#tryFile(files);
    return { findings: this.#findings, clock };
  }

  async #tryFile(files: TrialFiles): Promise<void> {
    let path = this.#file;
    this.#made.push({ path: this.#other, folder: false });
    const renaming = await failureOf(() => files.move(path, this.#other));
    if (renaming === null) {
      path = this.#other;
      for (const to of archivesOf(this.#rules())) this.#findings.push(await this.#tryArchive(files, path, to));
      // It may not have come back from an archive that cannot be read.
      if (!(await files.exists(path))) return;
    }
    const deleting = await failureOf(() => files.remove(path));
    if (renaming !== null) this.#say("renaming", renaming, this.#needRenameAlone());
    if (deleting !== null) this.#say("deleting", deleting, needDelete(this.#rules()));
    if (renaming === null && deleting === null)
      this.#findings.unshift({ level: "ok", about: "rights", what: "files can be renamed and deleted" });
  }

  /**
   * A missing folder is not created, since a running gateway may just be using it: a folder of the trial
   * beside it gives the same finding.
   */
  async #tryArchive(files: TrialFiles, path: string, to: string): Promise<ProbeFinding> {
    let exists = "";
    for (let at = to; at !== "." && exists === ""; at = posix.dirname(at)) if (await files.isFolder(at)) exists = at;
    const into = exists === to ? to : posix.join(exists, this.#folder);
    const there = posix.join(into, posix.basename(path));
    await failureOf(() => files.remove(there)); // A file of a check that was killed.
    const failure = await failureOf(async () => {
      if (into !== to) {
        await failureOf(() => files.removeFolder(into));
        this.#made.push({ path: into, folder: true });
        await files.makeFolder(into);
      }
      this.#made.push({ path: there, folder: false });
      await files.move(path, there);
      await files.move(there, path);
      if (into !== to) await files.removeFolder(into);
    });
    if (failure === null)
      return {
        level: "ok",
        about: "archive",
        what: exists === to ? `files can be moved to ${to}` : `${to} does not exist yet; it can be created`,
      };
    const rules = this.#rules().filter(({ rule }) => rule.action === "archive" && rule.to === to);
    return {
      level: "failed",
      about: "archive",
      what: `files cannot be moved to ${to}: ${failure} (${wordsOfRules(rules)})`,
      hint: `Give ${this.#facts.who} the right to create folders and files there, or name another folder.`,
    };
  }

  /** Removes the files of the trial, and returns those that cannot be removed. */
  async clean(): Promise<readonly string[]> {
    const left: string[] = [];
    // The check's own signal may have ended it.
    const files = this.#facts.files(AbortSignal.timeout(CLEANING_MS));
    for (const { path, folder } of this.#made.toReversed()) {
      try {
        if (folder ? await files.isFolder(path) : await files.exists(path))
          await (folder ? files.removeFolder(path) : files.remove(path));
      } catch {
        left.push(path); // The caller reports it with a hint.
      }
    }
    return left;
  }

  /** Removes the files of a check that was killed. */
  async #removeLeftovers(files: TrialFiles): Promise<void> {
    for (const path of [this.#file, this.#other]) await failureOf(() => files.remove(path));
  }

  async #refusal(files: TrialFiles, work: () => Promise<void>): Promise<string | null> {
    try {
      await work();
      return null;
    } catch (thrown) {
      return files.isRefusal(thrown) ? wordsOf(thrown) : null;
    }
  }

  #rules(): readonly EndRule[] {
    const { delivered, quarantined, unmatched, duplicate } = this.#facts.options.finish;
    return Object.entries({ delivered, quarantined, unmatched, duplicate }).map(([end, rule]) => ({
      end,
      rule,
    }));
  }

  /** A file that is deleted after its guard time can wait at its own path. */
  #needRenameAlone(): readonly EndRule[] {
    const { guard } = this.#facts.options.finish;
    return needRename(this.#rules()).filter(({ rule }) => rule.action === "archive" || guard === 0);
  }

  #sayUntried(words: string): void {
    this.#say("deleting", words, needDelete(this.#rules()));
    const needed = needRename(this.#rules());
    if (needed.length === 0) return;
    this.#findings.push({
      level: "warning",
      about: "rights",
      what:
        `whether files can be renamed, which ${wordsOfRules(needed)} needs, was not tried: ` +
        "a file of this check could not be deleted again",
      hint: "The first delivered file will show it in `headgate runs`.",
    });
  }

  #say(what: string, words: string, needed: readonly EndRule[]): void {
    const { who } = this.#facts;
    if (needed.length === 0)
      this.#findings.push({
        level: "ok",
        about: "rights",
        what: `${what} is refused (${words}), and no rule of \`finish\` needs it`,
      });
    else
      this.#findings.push({
        level: "failed",
        about: "rights",
        what: `${what} is refused (${words}), which ${wordsOfRules(needed)} needs`,
        hint: `Give ${who} the right to rename and delete files there, or set these rules of \`finish\` to leave.`,
      });
  }
}

interface EndRule {
  readonly end: string;
  readonly rule: FinishRule;
}

function needRename(rules: readonly EndRule[]): readonly EndRule[] {
  return rules.filter(({ rule }) => rule.action !== "leave");
}

/** Archived files are deleted, too, when their time is over. */
function needDelete(rules: readonly EndRule[]): readonly EndRule[] {
  return rules.filter(({ rule }) => rule.action === "delete" || (rule.action === "archive" && rule.keep !== undefined));
}

function archivesOf(rules: readonly EndRule[]): readonly string[] {
  return [...new Set(rules.flatMap(({ rule }) => (rule.action === "archive" ? [rule.to] : [])))];
}

function wordsOfRules(rules: readonly EndRule[]): string {
  return rules.map(({ end, rule }) => `finish.${end}: ${rule.action}`).join(", ");
}

async function failureOf(work: () => Promise<unknown>): Promise<string | null> {
  try {
    await work();
    return null;
  } catch (thrown) {
    return wordsOf(thrown);
  }
}
