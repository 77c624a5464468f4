/** Which trigger of an account claims a file, and why the others do not. */
import { basename } from "node:path/posix";
import { matchToken, matchTrigger } from "../../triggers/match.ts";
import type { FileTriggerTest, IngestionType, StoredFileTrigger } from "../../wire/index.ts";

export interface OfferedFile {
  /** Folders before it do not count. */
  readonly fileName: string;
  readonly ingestionType: IngestionType;
  /** Of the custom push route: it decides in place of the name. */
  readonly token?: string | undefined;
}

/** The first that matches claims, in the order of ids, in which `triggers` come. */
export function judged(triggers: readonly StoredFileTrigger[], file: OfferedFile): FileTriggerTest {
  const { ingestionType, token } = file;
  const fileName = basename(file.fileName);
  const verdicts = triggers.map((trigger) => {
    const byName = matchTrigger(trigger, fileName, ingestionType);
    const { matches, words } = token === undefined ? byName : matchToken(trigger, token);
    return { id: trigger.id, name: trigger.name, matches, reason: words, patterns: [...byName.patterns] };
  });
  const claimedBy = verdicts.find(({ matches }) => matches)?.id ?? null;
  return {
    fileName: file.fileName,
    ingestionType,
    claimedBy,
    triggers: verdicts.map((verdict) =>
      verdict.matches && verdict.id !== claimedBy
        ? { ...verdict, reason: `it matches, and the trigger ${claimedBy}, which comes before it, claims the file` }
        : verdict,
    ),
  };
}
