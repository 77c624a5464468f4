/** A 409 for the removal of something that calculated variables read. */
import { HttpProblem } from "#wire/http-problem.ts";
import type { Reader } from "../../store/calculated/readers.ts";

const SHOWN_MAX = 20;

/** `what`: such as `the variable 5`. */
export function inUse(what: string, users: readonly Reader[]): HttpProblem {
  const shown = users.slice(0, SHOWN_MAX).map(({ id, name }) => `${id} (${name})`);
  const more = users.length > SHOWN_MAX ? ` and ${users.length - SHOWN_MAX} more` : "";
  return new HttpProblem(
    409,
    "conflict",
    `calculated variables read ${what}: ${shown.join(", ")}${more}. ` +
      "Remove them first, or take it out of their formulas",
  );
}
