/** Names under which a formula reads its inputs: names of R, so that `inputVariables$alias` is one. */
import type { Formula } from "#wire/index.ts";
import { invalidField } from "../../http/problems.ts";

const NAME = /^(?:\p{L}|\.(?!\d))[\p{L}\p{N}._]*$/u;
const CHARACTERS_MAX = 100;
/** Reserved words of R. */
const RESERVED: ReadonlySet<string> = new Set(
  [
    "if else repeat while function for next break in TRUE FALSE NULL Inf NaN",
    "NA NA_integer_ NA_real_ NA_complex_ NA_character_ ...",
  ].flatMap((words) => words.split(" ")),
);

/** Throws a 400 that names the field. */
export function requireAliases(path: string, { variables = [], entities = [], constants = [] }: Formula): void {
  const places = new Map<string, string>();
  for (const [list, items] of Object.entries({ variables, entities, constants }))
    for (const [at, { alias }] of items.entries()) {
      const place = `${list}.${at}.alias`;
      const fault = aliasFault(alias);
      if (fault !== null) throw invalidField(`${path}.${place}`, fault);
      const other = places.get(alias);
      if (other !== undefined)
        throw invalidField(`${path}.${place}`, `is ${alias}, as ${other} is: aliases are unique in a formula`);
      places.set(alias, place);
    }
}

/** Null: it is a valid one. */
function aliasFault(alias: string): string | null {
  if (RESERVED.has(alias)) return `must not be ${alias}, which is a word of R`;
  if (NAME.test(alias) && alias.length <= CHARACTERS_MAX) return null;
  const shown = alias.length > CHARACTERS_MAX ? `${alias.slice(0, CHARACTERS_MAX)}…` : alias;
  return (
    `must be a name of R: letters, digits, dots and underscores, with a letter first, at most ${CHARACTERS_MAX} ` +
    `characters; and not ${JSON.stringify(shown)}`
  );
}
