/** An expression after its syntax was checked: nothing of math.js is left. */

export type Term =
  | { readonly kind: "number"; readonly value: number; readonly column: number }
  /** `null`: no value. */
  | { readonly kind: "nothing"; readonly column: number }
  | { readonly kind: "text"; readonly value: string; readonly column: number }
  | { readonly kind: "name"; readonly name: string; readonly column: number }
  | Call;

export interface Call {
  readonly kind: "call";
  /** A function of the language; operators are functions too. */
  readonly name: string;
  /** As it is shown in messages: `/` for `divide`. */
  readonly shown: string;
  readonly terms: readonly Term[];
  readonly column: number;
}

/** Names of a term, each once. */
export function namesIn(term: Term): ReadonlySet<string> {
  const found = new Set<string>();
  const visit = (one: Term): void => {
    if (one.kind === "name") found.add(one.name);
    if (one.kind === "call") one.terms.forEach(visit);
  };
  visit(term);
  return found;
}
