/** Links in the bar on top of every page. */
import type { PageLink } from "#pages/kit/index.ts";
import type { BrowserSession } from "../sessions/sessions.ts";
import { hasRight, type Right } from "../token/rights.ts";

const LINKS: readonly { readonly path: string; readonly words: string; readonly right?: Right }[] = [
  { path: "/", words: "Explorer" },
  { path: "/me", words: "My account" },
  { path: "/people", words: "People", right: "people" },
  { path: "/docs/", words: "API" },
];

export function linksFor(
  { user, accountId }: BrowserSession,
  href: (path: string) => string,
  current: string,
): readonly PageLink[] {
  return LINKS.filter(({ right }) => right === undefined || hasRight(user, accountId, right)).map(
    ({ path, words }) => ({
      href: href(path),
      words,
      isCurrent: current.split("?")[0] === path || current.startsWith(`${path}/`),
    }),
  );
}
