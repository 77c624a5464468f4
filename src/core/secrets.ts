/**
 * The secrets that this process has read: every value that a schema marks as secret. The log, errors, output of
 * commands and responses of the operations API pass through `masked`.
 */
import { uriDecoded } from "./text.ts";

/** Masking shorter values, and words that the product itself writes, would garble ordinary text: see `keepSecret`. */
const LENGTH_MIN = 6;
const OWN_WORD = /^headgate(?:[_-][a-z]+)*$/i;
/** Names of fields that hold secrets. */
const FIELDS = "password|passphrase|privateKey|clientSecret|client_secret|secret|token|access_token|authorization";
/** A shorter path of a URL holds no secret. */
const PATH_LENGTH_MIN = 16;
const MASK = "[redacted]";

const known = new Set<string>();
/** Longest first: one secret may be part of another. */
let ordered: readonly string[] = [];
/** Each weak secret with the expression that finds it. */
const weak = new Map<string, RegExp>();

/**
 * A value that is short, or one of `words` (words that the product itself writes), is weak: it is masked only as the
 * value of a field whose name marks a secret, and as the password in a URL.
 */
export function keepSecret(value: string, words: ReadonlySet<string> = new Set()): void {
  const before = known.size;
  for (const part of partsOf(value)) {
    if (part === "") continue;
    if (part.length < LENGTH_MIN || OWN_WORD.test(part) || words.has(part)) {
      if (!known.has(part)) weak.set(part, weakPattern(part));
      continue;
    }
    for (const form of [part, JSON.stringify(part).slice(1, -1), encodeURIComponent(part)]) known.add(form);
  }
  if (known.size > before) ordered = [...known].sort((one, other) => other.length - one.length);
}

export function masked(text: string): string {
  let clean = text;
  for (const secret of ordered) if (clean.includes(secret)) clean = clean.replaceAll(secret, MASK);
  for (const [secret, pattern] of weak) if (clean.includes(secret)) clean = clean.replace(pattern, MASK);
  return clean;
}

/** The number of secrets that are masked only in those places. */
export function weakSecrets(): number {
  return weak.size;
}

function weakPattern(secret: string): RegExp {
  const text = RegExp.escape(secret);
  return new RegExp(`(?<="(?:${FIELDS})"\\s*:\\s*")${text}(?=")|(?<=://[^\\s/@:]*:)${text}(?=@)`, "g");
}

/** For a URL that holds a secret: the URL as a whole and its secret part, the password or the path. */
function partsOf(value: string): readonly string[] {
  const url = /^[a-z][a-z0-9+.-]*:\/\//i.test(value) ? URL.parse(value) : null;
  if (url === null) return [value];
  const path = `${url.pathname}${url.search}`;
  if (url.password !== "") return [value, url.href, url.password, uriDecoded(url.password)];
  // A host alone is not secret.
  if (path === "/" || path === "") return [];
  return path.length < PATH_LENGTH_MIN ? [value, url.href] : [value, url.href, path];
}
