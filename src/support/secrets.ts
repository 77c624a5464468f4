/**
 * The secrets that this process has read: whatever a schema marks as secret. The log, errors, and what commands print and the operator's
 * interface answers go through `masked`.
 */

/** Shorter values would take words out of what is written. */
const LENGTH_MIN = 6;
/** A shorter path of an address names nothing that could be guarded. */
const PATH_LENGTH_MIN = 16;
const MASK = "[redacted]";

const known = new Set<string>();
/** Longest first: one may be a part of another. */
let ordered: readonly string[] = [];

export function keepSecret(value: string): void {
  const before = known.size;
  for (const part of partsOf(value)) {
    if (part.length < LENGTH_MIN) continue;
    for (const form of [part, JSON.stringify(part).slice(1, -1), encodeURIComponent(part)]) known.add(form);
  }
  if (known.size > before) ordered = [...known].sort((one, other) => other.length - one.length);
}

export function masked(text: string): string {
  let clean = text;
  for (const secret of ordered) if (clean.includes(secret)) clean = clean.replaceAll(secret, MASK);
  return clean;
}

/** Of an address that holds a secret, the address as a whole and what in it is one: its password, or its path. */
function partsOf(value: string): readonly string[] {
  const url = /^[a-z][a-z0-9+.-]*:\/\//i.test(value) ? URL.parse(value) : null;
  if (url === null) return [value];
  const path = `${url.pathname}${url.search}`;
  if (url.password !== "") return [value, url.href, url.password, decoded(url.password)];
  // A host alone is none.
  if (path === "/" || path === "") return [];
  return path.length < PATH_LENGTH_MIN ? [value, url.href] : [value, url.href, path];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (thrown) {
    if (thrown instanceof URIError) return text;
    throw thrown;
  }
}
