/** Reads one YAML file: resolves `${env:NAME}` and `${file:PATH}`, validates, and reports every fault with its line. */
import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { isMap, isPair, isScalar, isSeq, LineCounter, parseDocument, visit } from "yaml";
import type { z } from "zod";
import { ConfigError, type ErrorFacts, systemCode, wordsOf } from "../errors.ts";
import { nearestName } from "../nearest-name.ts";
import { keepSecret } from "../secrets.ts";
import { startFault } from "../start-fault.ts";
import { inputSchemaOf } from "./json-schema.ts";
import { secretsOf, wordsOfSchema } from "./secrets.ts";

type Path = readonly PropertyKey[];
type ParsedYaml = ReturnType<typeof parseDocument>;

const OF_HUB = ["accounts", "store"];
const OF_GATEWAY = ["drops", "services", "triggers"];

/**
 * Returns the parsed, validated and deeply frozen document. Throws `ConfigError` with one line for each fault.
 * `files` receives the absolute paths of all files that were read or should have been read, also when it throws.
 */
export function loadDocument<Schema extends z.ZodType>(
  path: string,
  schema: Schema,
  files: Set<string> = new Set(),
): z.output<Schema> {
  return readDocument(path, files).validated(schema);
}

/** A file that is parsed and not validated yet. */
export interface ParsedDocument {
  /** The keys at its top level. */
  readonly sections: ReadonlySet<string>;
  /** Its data as they are written: nothing that they name is resolved. */
  readonly written: object;
  /**
   * As `loadDocument`. `unresolved` receives the references that cannot be resolved, by their places, which then are no
   * faults: each stays as it is written, or is a value of its form. A command resolves no more than it uses.
   */
  validated<Schema extends z.ZodType>(schema: Schema, unresolved?: Map<string, ConfigError>): z.output<Schema>;
}

/** Throws `ConfigError` for a file that cannot be read, or is no YAML. `files`: as for `loadDocument`. */
export function readDocument(path: string, files: Set<string> = new Set()): ParsedDocument {
  files.add(resolve(path));
  return parsedText(readConfigFile(path), path, files);
}

/** The data of a file as far as it can be parsed, whatever its faults; nothing that they name is resolved. */
export function readableData(path: string): object {
  try {
    return dataOf(parseDocument(readConfigFile(path)));
  } catch {
    return {}; // What is wrong with the file is reported where it has to be valid.
  }
}

/** A document of data that were written in another file. */
export function documentOf(written: object, path: string): ParsedDocument {
  return parsedText(JSON.stringify(written), path, new Set());
}

function readConfigFile(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw unreadable("HG-CONF-001", { operation: "read configuration", subject: path, cause });
  }
}

/** A missing permission needs a person (`ConfigError`); a failing disk may recover (`TransientError`). */
function unreadable(code: "HG-CONF-001" | "HG-CONF-003", facts: ErrorFacts & { readonly cause: unknown }) {
  const isForbidden = ["EACCES", "EPERM"].includes(systemCode(facts.cause) ?? "");
  return isForbidden ? new ConfigError(code, facts) : startFault(code, facts);
}

export function parseConfigText<Schema extends z.ZodType>(
  text: string,
  schema: Schema,
  path: string,
  files: Set<string> = new Set(),
): z.output<Schema> {
  return parsedText(text, path, files).validated(schema);
}

function parsedText(text: string, path: string, files: Set<string>): ParsedDocument {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines });
  if (document.errors.length > 0) {
    throw invalid(path, yamlFaults(document, text));
  }
  const { contents } = document;
  const keys = isMap(contents) ? contents.items.map(({ key }) => String(isScalar(key) ? key.value : key)) : [];
  return {
    sections: new Set(keys),
    // Before secrets are resolved, which changes the document.
    written: dataOf(document),
    validated: (schema, unresolved) => validated(document, lines, { schema, path, files, unresolved }),
  };
}

function validated<Schema extends z.ZodType>(
  document: ParsedYaml,
  lines: LineCounter,
  {
    schema,
    path,
    files,
    unresolved,
  }: {
    readonly schema: Schema;
    readonly path: string;
    readonly files: Set<string>;
    readonly unresolved?: Map<string, ConfigError> | undefined;
  },
): z.output<Schema> {
  resolveSecrets(document, path, files, unresolved);
  const data: unknown = document.toJS() ?? {};
  // Secrets are registered before any fault is reported: an invalid configuration holds secrets too.
  const words = wordsOfSchema(schema);
  for (const secret of secretsOf(data, schema)) keepSecret(secret, words);
  // A document is read once: to compile parsers for it takes longer than to do without.
  let parsed = schema.safeParse(data, { jitless: true });
  for (const form of unresolved === undefined || unresolved.size === 0 ? [] : FORMS) {
    if (parsed.success) break;
    for (const place of unresolvedFaults(parsed.error.issues, unresolved)) document.setIn(JSON.parse(place), form);
    parsed = schema.safeParse(document.toJS() ?? {}, { jitless: true });
  }
  if (parsed.success) return deepFreeze(parsed.data);
  const known = knownKeys(schema);
  throw invalid(
    path,
    parsed.error.issues.flatMap((issue) => issueWords(issue, document, lines, known)),
  );
}

/** Values that stand for a reference whose place takes no text of any form. */
const FORMS = ["https://unresolved.invalid/", "127.0.0.1:9", "1", 1, true] as const;

/** The unresolved places at or below which there is a fault. */
function unresolvedFaults(
  issues: readonly z.core.$ZodIssue[],
  unresolved: ReadonlyMap<string, ConfigError> = new Map(),
): readonly string[] {
  const paths = issues.map(({ path }) => JSON.stringify(path).slice(0, -1));
  return [...unresolved.keys()].filter((place) => paths.some((path) => place.startsWith(path)));
}

function dataOf(document: ParsedYaml): object {
  const data: unknown = document.toJS();
  return typeof data === "object" && data !== null ? data : {};
}

/**
 * The first `max` faults of a text in the words of `loadDocument`, how many there are, and its value when there is
 * none. Nothing that the text names is resolved: a value such as `${env:NAME}` counts as valid, and no secret is
 * remembered.
 */
export function faultsIn<Schema extends z.ZodType>(
  text: string,
  schema: Schema,
  max: number,
): { readonly faults: readonly string[]; readonly count: number; readonly value: z.output<Schema> | null } {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines });
  if (document.errors.length > 0) {
    const faults = yamlFaults(document, text);
    return { faults: faults.slice(0, max), count: faults.length, value: null };
  }
  let data: object;
  try {
    data = dataOf(document);
  } catch (thrown) {
    // Aliases that would grow without end.
    return { faults: [wordsOf(thrown)], count: 1, value: null };
  }
  const parsed = schema.safeParse(data);
  if (parsed.success) return { faults: [], count: 0, value: parsed.data };
  const known = knownKeys(schema);
  const isNamed = ({ path }: z.core.$ZodIssue) => String(document.getIn(path) ?? "").includes("${");
  const issues = parsed.error.issues.filter((issue) => !isNamed(issue)).flatMap(byKey);
  const faults = issues.slice(0, max).flatMap((issue) => issueWords(issue, document, lines, known));
  return { faults: faults.slice(0, max), count: faults.length + Math.max(0, issues.length - max), value: null };
}

/** An issue for each unknown key. */
function byKey(issue: z.core.$ZodIssue): readonly z.core.$ZodIssue[] {
  return issue.code === "unrecognized_keys" ? issue.keys.map((key) => ({ ...issue, keys: [key] })) : [issue];
}

/** Reads environment variables that have a meaning of their own; undefined when empty. */
export function environmentVariable(name: string): string | undefined {
  return process.env[name] || undefined;
}

/**
 * Inside `{ }` and `[ ]`, `${env:NAME}` without quotes ends the value at its brace, and the parser's own message does
 * not explain that.
 */
function yamlFaults(document: ParsedYaml, text: string): readonly string[] {
  const faults = document.errors.map((error) => error.message.split("\n")[0] ?? error.message);
  const line = document.errors[0]?.linePos?.[0].line;
  const secret = line === undefined ? null : UNQUOTED.exec(text.split("\n")[line - 1] ?? "")?.[1];
  if (secret === undefined || secret === null) return faults;
  return [`line ${line}: put quotes around ${secret}, since it stands inside of { } or [ ]: "${secret}"`];
}

function invalid(path: string, faults: readonly string[]): ConfigError {
  return new ConfigError("HG-CONF-002", {
    operation: "read configuration",
    subject: path,
    message: `the configuration is not valid:\n${faults.map((fault) => `  ${fault}`).join("\n")}`,
  });
}

const UNQUOTED = /[{[,:]\s*(\$\{(?:env|file):[^}]+\})/;
const SECRET = /\$\{(env|file):([^}]+)\}/g;

function resolveSecrets(
  document: ParsedYaml,
  path: string,
  files: Set<string>,
  unresolved: Map<string, ConfigError> | undefined,
): void {
  visit(document, {
    Scalar(_key, node, above) {
      if (typeof node.value !== "string" || !node.value.includes("${")) return;
      try {
        node.value = node.value.replace(SECRET, (_all, kind: string, name: string) =>
          kind === "env" ? secretFromEnvironment(name, path) : secretFromFile(name, path, files),
        );
      } catch (thrown) {
        if (unresolved === undefined || !(thrown instanceof ConfigError)) throw thrown;
        unresolved.set(JSON.stringify(placeOf(node, above)), thrown);
      }
    },
  });
}

/** The keys and indexes that lead to a value. */
function placeOf(node: unknown, above: readonly unknown[]): readonly (string | number)[] {
  return [...above.slice(1), node].flatMap((one, at): readonly (string | number)[] => {
    const parent = above[at];
    if (isSeq(parent)) return [parent.items.indexOf(one)];
    return isPair(parent) ? [String(isScalar(parent.key) ? parent.key.value : parent.key)] : [];
  });
}

function secretFromEnvironment(name: string, path: string): string {
  if (Object.hasOwn(process.env, name)) return process.env[name] ?? "";
  throw new ConfigError("HG-CONF-003", {
    operation: "read configuration",
    subject: path,
    message: `the environment variable ${name}, named by \${env:${name}}, is not set`,
  });
}

function secretFromFile(name: string, path: string, files: Set<string>): string {
  const place = resolve(dirname(path), name);
  files.add(place);
  try {
    return readFileSync(place, "utf8").replace(/\r?\n$/, "");
  } catch (cause) {
    throw unreadable("HG-CONF-003", {
      operation: "read configuration",
      subject: path,
      message: `the file ${name}, named by \${file:${name}}, cannot be read`,
      cause,
    });
  }
}

/** Keys of former versions, and the keys that replaced them. */
const FORMER_KEYS: ReadonlyMap<string, string> = new Map([
  [
    "operations.alarm",
    "; replaced by notifications: write `notifications: { receivers: [{ name: alarm, kind: webhook, url: …, " +
      "about: [late] }] }` (docs/operations.md#notifications)",
  ],
]);

function issueWords(
  issue: z.core.$ZodIssue,
  document: ParsedYaml,
  lines: LineCounter,
  known: (path: Path) => readonly string[],
): readonly string[] {
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => {
      const nearest = nearestName(key, known(issue.path));
      const former = FORMER_KEYS.get([...issue.path, key].join("."));
      const help = former ?? (nearest === undefined ? "" : `; did you mean ${nearest}?`);
      return `${at(document, lines, [...issue.path, key])}unknown key ${dotted([...issue.path, key])}${help}`;
    });
  }
  if (issue.code === "invalid_union" && issue.errors.length > 0) {
    const deepest = [...issue.errors].sort((a, b) => depthOf(b) - depthOf(a))[0] ?? [];
    if (depthOf(deepest) === 0 && issue.errors.length > 1) {
      const place = `${at(document, lines, issue.path)}${dotted(issue.path)}`;
      return [`${place}: expected ${expectations(issue.errors.flat(), known(issue.path))}`];
    }
    return deepest.flatMap((inner) =>
      issueWords({ ...inner, path: [...issue.path, ...inner.path] } as z.core.$ZodIssue, document, lines, known),
    );
  }
  return [`${at(document, lines, issue.path)}${dotted(issue.path)}: ${issue.message}`];
}

/** The values that the variants of a union accept, such as `"leave", "delete" or { archive: … }`. */
function expectations(issues: readonly z.core.$ZodIssue[], keys: readonly string[]): string {
  const words = issues.map((issue) => {
    if (issue.code === "invalid_value") return issue.values.map((value) => JSON.stringify(value)).join(", ");
    if (issue.code !== "invalid_type") return issue.message;
    if (issue.expected !== "object" || keys.length === 0) return `a value of type ${issue.expected}`;
    return `{ ${keys[0]}: … }`;
  });
  const all = [...new Set(words)];
  return [all.slice(0, -1).join(", "), ...all.slice(-1)].filter((part) => part !== "").join(" or ");
}

function depthOf(issues: readonly z.core.$ZodIssue[]): number {
  return Math.max(0, ...issues.map((issue) => issue.path.length));
}

/** `line 12: `: the line of the value or, where it is absent, of its nearest parent. */
function at(document: ParsedYaml, lines: LineCounter, path: Path): string {
  for (let length = path.length; length > 0; length--) {
    const node = document.getIn(path.slice(0, length), true) as { range?: readonly number[] } | undefined;
    const offset = keyOffset(document, path.slice(0, length)) ?? node?.range?.[0];
    if (offset !== undefined) return `line ${lines.linePos(offset).line}: `;
  }
  return "";
}

function keyOffset(document: ParsedYaml, path: Path): number | undefined {
  const parent = path.length === 1 ? document.contents : document.getIn(path.slice(0, -1), true);
  if (typeof parent !== "object" || parent === null || !("items" in parent)) return undefined;
  for (const item of parent.items as readonly { key?: unknown }[]) {
    if (isScalar(item.key) && item.key.value === path.at(-1)) return item.key.range?.[0];
  }
  return undefined;
}

function dotted(path: Path): string {
  return path
    .map((part, index) => (typeof part === "number" ? `[${part}]` : `${index > 0 ? "." : ""}${String(part)}`))
    .join("");
}

function deepFreeze<Value>(value: Value): Value {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const inner of Object.values(value)) deepFreeze(inner);
  }
  return value;
}

// Whether a configuration is that of a gateway or of a hub, by its sections.

/** Undefined where the sections are of both or of none: the faults of the file say more then. */
export function kindOf({ sections }: Pick<ParsedDocument, "sections">): "gateway" | "hub" | undefined {
  const isHub = OF_HUB.some((name) => sections.has(name));
  const isGateway = OF_GATEWAY.some((name) => sections.has(name));
  if (isHub === isGateway) return undefined;
  return isHub ? "hub" : "gateway";
}

/** Throws `ConfigError` for a configuration of the other kind, whose faults would only be a list of unknown keys. */
export function requireKind(wanted: "gateway" | "hub", document: ParsedDocument, path: string): void {
  const found = kindOf(document);
  if (found === undefined || found === wanted) return;
  const code = found === "hub" ? "HG-CONF-006" : "HG-CONF-007";
  throw new ConfigError(code, { operation: "read configuration", subject: path });
}

// The names of keys that a schema knows, for the suggestions beside an unknown one.

interface JsonSchema {
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly allOf?: readonly JsonSchema[];
}

/** The names of keys that may stand at a path, from the schema's JSON Schema. */
function knownKeys(schema: z.ZodType): (path: Path) => readonly string[] {
  const root: JsonSchema = inputSchemaOf(schema);
  return (path) => {
    let here = [root];
    for (const part of path) {
      here = here.flatMap(variants).flatMap((one) => {
        const next = typeof part === "number" ? one.items : ownProperty(one, String(part));
        return next === undefined ? [] : [next];
      });
    }
    return [...new Set(here.flatMap(variants).flatMap((one) => Object.keys(one.properties ?? {})))];
  };
}

function ownProperty({ properties }: JsonSchema, name: string): JsonSchema | undefined {
  return properties !== undefined && Object.hasOwn(properties, name) ? properties[name] : undefined;
}

function variants(schema: JsonSchema): JsonSchema[] {
  const inner = [...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])];
  return [schema, ...inner.flatMap(variants)];
}
