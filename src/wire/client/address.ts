/** Addresses and header values of calls. */
import type { HttpCall } from "./http.ts";

/** A query in the form of the wire schemas. */
export type Query = Readonly<Record<string, unknown>>;
export type Address = Pick<HttpCall, "origin" | "path">;

/** Lists become repeated keys; undefined values are left out. */
export function address(base: string, path: string, query: Query): Address {
  const url = new URL(base);
  url.pathname = url.pathname.replace(/\/+$/, "") + path;
  for (const [key, value] of Object.entries(query)) {
    for (const item of Array.isArray(value) ? value : [value])
      if (item !== undefined) url.searchParams.append(key, String(item));
  }
  return { origin: url.origin, path: url.pathname + url.search };
}

export function queryValue(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}

/** Header values are visible ASCII; an operation id may hold anything. */
export function headerSafe(text: string): string {
  return /^[\x21-\x7e]+$/.test(text) ? text : queryValue(text);
}
