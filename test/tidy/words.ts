/** Words of a private dialect, and the usual ones to write in their place. */
export interface BannedWord {
  readonly pattern: RegExp;
  readonly say: string;
  /** The pattern is about the code as it is written; otherwise names are split into their words first. */
  readonly isRaw?: boolean;
}

export const BANNED_WORDS: readonly BannedWord[] = [
  { pattern: /\bdesks?\b/gi, say: "stage, queue" },
  { pattern: /\b(party|parties)\b/gi, say: "group, list, task" },
  { pattern: /\bgather(s|ed|ing)?\b/gi, say: "collect, or one path for lists" },
  { pattern: /\b[a-z]+Together\b|\btogether[A-Z]/g, say: "a list; there is one path", isRaw: true },
  { pattern: /\b(shelf|shelves)\b/gi, say: "store, pool, index" },
  { pattern: /\boffices?\b/gi, say: "operations API" },
  { pattern: /\bdoors?\b/gi, say: "endpoint, listener" },
  { pattern: /\bknock(s|ed)?\b/gi, say: "connect, authorize" },
  { pattern: /\bfarewells?\b/gi, say: "shutdown" },
  { pattern: /\b(small|intake|delivery|free|in|of|a) hands?\b/gi, say: "concurrency, slot, in progress" },
  { pattern: /\b(sparing|doubts?)\b/gi, say: "exclusion, unknown outcome" },
  {
    pattern: /\blook(s|ed|ing)? (again|around|at|for|in|into|on|round|through)\b/gi,
    say: "check, scan, poll, search",
  },
  { pattern: /\b(tells?|told|telling)\b/gi, say: "report, notify, log, receive" },
  { pattern: /\b(hears?|heard)\b/gi, say: "receive" },
  {
    pattern: /\b(gives?|gave|takes?|took|carr(y|ies|ied) out) (an |the |its )?orders?\b/gi,
    say: "send or execute a command",
  },
  { pattern: /\borders? of (a )?persons?\b/gi, say: "command" },
  { pattern: /\b(goes|go|going|gone|went) on\b/gi, say: "continue, resume" },
  { pattern: /\b(lies|lay|lain|lying)\b/gi, say: "is, is stored" },
  { pattern: /\banew\b/gi, say: "again" },
  { pattern: /\bwho(so|m)?ever\b/gi, say: "a named subject" },
  {
    pattern: /\b(nobody|somebody|anybody|everybody)\b/gi,
    say: "a named subject: no process, the operator, the user",
  },
  { pattern: /\bunder ?way\b/gi, say: "in progress, running" },
  { pattern: /\bto be had\b/gi, say: "available" },
  { pattern: /\bany more\b/gi, say: "no longer" },
  { pattern: /\bof (now|before)\b/gi, say: "current, former" },
  { pattern: /\b(have|has|make|makes|made|no|of) room\b/gi, say: "space, quota" },
  { pattern: /\bnot to be\b/gi, say: "must not be, cannot be" },
  { pattern: /(^|\s)(\/\*\*|\/\/|\*) (Answers?) /gm, say: "Returns", isRaw: true },
  {
    pattern: /^[ \t]*(\/\*\*|\/\/|\*) (What|Who|Whose|Those|That which)\b(?![^.\n]*\?)/gm,
    say: "a comment whose subject is named",
    isRaw: true,
  },
];

/** Each banned word of a text with its line, from 1. */
export function bannedWordsIn(
  text: string,
): readonly { readonly line: number; readonly found: string; readonly say: string }[] {
  const words = text.replace(/(?<=[a-z\d])(?=[A-Z])/g, " ").replace(/#(?=[a-z])/g, "");
  return BANNED_WORDS.flatMap(({ pattern, say, isRaw }) => {
    const of = isRaw === true ? text : words;
    return [...of.matchAll(pattern)].map((match) => ({
      line: of.slice(0, match.index).split("\n").length,
      found: match[0].trim(),
      say,
    }));
  });
}
