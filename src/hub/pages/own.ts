/** The frame of the pages about one's own account. */
import { type Content, html, Notice, Tabs } from "#pages/kit/index.ts";
import type { Page } from "./frame.ts";
import type { MemberVisit } from "./page.ts";

const TABS = [
  { path: "/me", words: "Profile" },
  { path: "/me/second-factor", words: "Second factor" },
  { path: "/me/tokens", words: "Tokens" },
  { path: "/me/sessions", words: "Sessions" },
];

export function ownPage(visit: MemberVisit, title: string, children: Content): Page {
  const current = visit.request.url.split("?")[0];
  const links = TABS.map(({ path, words }) => ({ href: visit.href(path), words, isCurrent: isWithin(current, path) }));
  return { title, children: [Tabs({ label: "My account", links }), children] };
}

/** The profile is above all the others. */
function isWithin(current: string | undefined, path: string): boolean {
  return current === path || (path !== "/me" && current?.startsWith(`${path}/`) === true);
}

/** Null when the user acts for himself: what is his own stays out of the reach of those who act as him. */
export function notAsAnother(visit: MemberVisit, title: string): Page | null {
  const { impersonator, user } = visit.session;
  if (impersonator === null) return null;
  const words = html`<p>You act as ${user.username}. Only ${user.username} can see and change this.</p>`;
  return { ...ownPage(visit, title, Notice({ kind: "warning", children: words })), status: 403 };
}
