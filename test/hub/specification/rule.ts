/**
 * A test named after a rule of `config/specification-rules.json`; `npm run generate` links the two in
 * `docs/dev/specification-coverage.md`.
 */
import { test } from "vitest";
import sections from "../../../config/specification-rules.json" with { type: "json" };

type Sections = typeof sections;
export type RuleId = {
  [Name in keyof Sections]: keyof Sections[Name]["rules"];
}[keyof Sections];

const WORDS: Readonly<Record<string, string>> = Object.assign({}, ...Object.values(sections).map(({ rules }) => rules));

export function rule(id: RuleId, check: () => Promise<void> | void): void {
  test(`${id}: ${WORDS[id]}`, check);
}
