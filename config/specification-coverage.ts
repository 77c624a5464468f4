/** Joins the rules of the specification with the tests named after them: `docs/dev/specification-coverage.md`. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import sections from "./specification-rules.json" with { type: "json" };

interface Section {
  readonly rules: Readonly<Record<string, string>>;
  readonly "part 2": Readonly<Record<string, string>>;
}
const SECTIONS = Object.entries(sections) as readonly (readonly [string, Section])[];

/** `page`, and what is wrong: rules without a test, tests of no rule, rules that two tests name. */
export function specificationCoverage(root: string): {
  readonly page: string;
  readonly faults: readonly string[];
} {
  const tests = new Map<string, string>();
  const faults: string[] = [];
  for (const file of globSync("test/{hub,platform}/**/*.test.ts", { cwd: root }).sort()) {
    for (const [, id = ""] of readFileSync(join(root, file), "utf8").matchAll(/^\s*rule\(\s*"([^"]+)"/gm)) {
      if (tests.has(id)) faults.push(`${file}: the rule ${id} has a test in ${tests.get(id)} already`);
      tests.set(id, file);
    }
  }
  const known = new Set(SECTIONS.flatMap(([, { rules }]) => Object.keys(rules)));
  for (const [id, file] of tests)
    if (!known.has(id)) faults.push(`${file}: ${id} is no rule of config/specification-rules.json`);
  for (const id of known)
    if (!tests.has(id)) faults.push(`config/specification-rules.json: no test is named after the rule ${id}`);
  return { page: pageOf(tests), faults };
}

function pageOf(tests: ReadonlyMap<string, string>): string {
  const covered = SECTIONS.reduce((sum, [, { rules }]) => sum + Object.keys(rules).length, 0);
  const later = SECTIONS.reduce((sum, [, section]) => sum + Object.keys(section["part 2"]).length, 0);
  return [
    "# Coverage of the specification",
    "",
    "What the interface specification of the service says, rule by rule and in our words, and " +
      `the test of the hub that is named after each: ${covered} rules.`,
    ...(later === 0 ? [] : [`${later} more, marked part 2, are about what the hub does not do yet.`]),
    "`npm run check` fails on a rule without a test, and on a test of no rule.",
    "",
    ...SECTIONS.flatMap(([name, section]) => [
      `## ${name}`,
      "",
      "| rule | says | test |",
      "|---|---|---|",
      ...Object.entries(section.rules).map(([id, words]) => `| \`${id}\` | ${words} | ${linkOf(tests.get(id))} |`),
      ...Object.entries(section["part 2"]).map(([id, words]) => `| \`${id}\` | ${words} | part 2 |`),
      "",
    ]),
  ].join("\n");
}

function linkOf(file: string | undefined): string {
  return file === undefined ? "none" : `[${file.split("/").at(-1)}](../../${file})`;
}
