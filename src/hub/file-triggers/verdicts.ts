/** Which trigger of an account claims a file, and why the others do not. */
import { basename } from "node:path/posix";
import { gzipEntryName, isContainerName, isZipName } from "#core/file-names.ts";
import type { FileTriggerJudgement, FileTriggerTest, IngestionType, StoredFileTrigger } from "#wire/index.ts";
import { matchToken, matchTrigger } from "#wire/trigger-match.ts";

export interface OfferedFile {
  /** Folders before it do not count. */
  readonly fileName: string;
  readonly ingestionType: IngestionType;
  /** Of the custom push route: it decides in place of the name. */
  readonly token?: string | undefined;
  /** Names of files in it, when it is a ZIP. */
  readonly entries: readonly string[];
}

type Triggers = readonly StoredFileTrigger[];

/** Triggers claim the entries of a container, and not the container itself (`runs/claims.ts`). */
export function judged(triggers: Triggers, file: OfferedFile): FileTriggerTest {
  const { fileName, ingestionType, token } = file;
  if (token !== undefined || !isContainerName(basename(fileName)))
    return { ...judgedByName(triggers, fileName, file), ingestionType, container: null };
  const names = isZipName(fileName) ? file.entries : [gzipEntryName(fileName)];
  const entries = names.map((name) =>
    isContainerName(basename(name))
      ? { fileName: name, claimedBy: null, triggers: [], refused: NESTED }
      : { ...judgedByName(triggers, name, file), refused: null },
  );
  const reason = isZipName(fileName) ? `${OPENED}${entries.length === 0 ? NAME_ENTRIES : ""}` : UNPACKED;
  return { fileName, ingestionType, claimedBy: null, triggers: [], container: { reason, entries } };
}

const OPENED = "a ZIP is opened, and each file in it is offered to the triggers by its own name";
const NAME_ENTRIES = "; Entry=NAME, repeated, tests names of files in it";
const UNPACKED = "a .gz is unpacked, and the file in it is offered to the triggers by its own name, without .gz";
const NESTED = "it is a container within another, and only the outermost one is opened: the file is quarantined";

/** The first that matches claims, in the order of ids, in which `triggers` come. */
function judgedByName(
  triggers: Triggers,
  path: string,
  { ingestionType, token }: Pick<OfferedFile, "ingestionType" | "token">,
): FileTriggerJudgement {
  const fileName = basename(path);
  const verdicts = triggers.map((trigger) => {
    const byName = matchTrigger(trigger, fileName, ingestionType);
    const { matches, words } = token === undefined ? byName : matchToken(trigger, token);
    return { id: trigger.id, name: trigger.name, matches, reason: words, patterns: [...byName.patterns] };
  });
  const claimedBy = verdicts.find(({ matches }) => matches)?.id ?? null;
  return {
    fileName: path,
    claimedBy,
    triggers: verdicts.map((verdict) =>
      verdict.matches && verdict.id !== claimedBy
        ? { ...verdict, reason: `it matches, and the trigger ${claimedBy}, which comes before it, claims the file` }
        : verdict,
    ),
  };
}
