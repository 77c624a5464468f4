/** The reasons why the spool takes no file, in words. */
import { type ErrorCode, wordsOf } from "#core/errors.ts";

export interface Refusal {
  readonly code: ErrorCode;
  /** Without numbers that change, so that it is one reason for as long as it lasts. */
  readonly words: string;
}

export interface HeldBytes {
  readonly runs: number;
  readonly bytes: number;
}

export function overBudget(budget: number, held: HeldBytes): Refusal {
  return {
    code: "HG-SPOOL-005",
    words:
      "no files are taken: what waits to be delivered fills the budget of the spool " +
      `(\`spool.budget\`, ${budget} bytes); files stay at their drops until there is space${heldWords(held)}`,
  };
}

export function diskShort(headroom: number): Refusal {
  return {
    code: "HG-SPOOL-006",
    words:
      "no files are taken: the disk of the spool has less free space than it should keep " +
      `(\`spool.headroom\`, ${headroom} bytes); files stay at their drops until there is space`,
  };
}

export function tooLargeNow({ runs }: HeldBytes): Refusal {
  const held = runs === 0 ? "" : "; held runs take a part of it: `headgate quarantine` lists them";
  return {
    code: "HG-SPOOL-005",
    words:
      "the file is larger than what is left of the budget of the spool (`spool.budget`); " +
      `it stays at its drop until there is space${held}`,
  };
}

/** The folder has vanished, or may not be read. */
export function uncountable(thrown: unknown): Refusal {
  return {
    code: "HG-SPOOL-004",
    words: `no files are taken: the spool cannot be read (${wordsOf(thrown)}); files stay at their drops`,
  };
}

/** Empty when no run is held: only held runs need a person before their space is free again. */
function heldWords({ runs, bytes }: HeldBytes): string {
  if (runs === 0) return "";
  return (
    `; ${runs} held ${runs === 1 ? "run takes" : "runs take"} ${bytes} bytes of it: ` +
    "`headgate quarantine` says what each waits for, and how to release or cancel it"
  );
}
