/** The frame of the hub's pages, with what it shows of the session, and the headers of every page. */
import { hash } from "node:crypto";
import { Button, type Content, Form, html, Layout, type PageLink, STYLESHEET } from "#pages/kit/index.ts";
import { documentOf } from "#pages/kit/render.ts";
import type { BrowserSession } from "../sessions/sessions.ts";

const PRODUCT = "Headgate hub";
export const STYLESHEET_PATH = "/assets/kit.css";
/** Browsers keep the stylesheet until it changes. */
const VERSION = hash("sha256", STYLESHEET, "hex").slice(0, 12);

export interface Page {
  readonly title: string;
  readonly children: Content;
  /** 200 when absent. */
  readonly status?: number;
  /** A page that is one form. */
  readonly isNarrow?: boolean;
  /** A page as wide as the window. */
  readonly isFull?: boolean;
  /** Addresses of our own files. */
  readonly scripts?: readonly string[];
  readonly stylesheets?: readonly string[];
  readonly retryAfterSec?: number | undefined;
}

interface Frame {
  readonly base: string;
  readonly csrf: string;
  /** Null: no user has signed in. */
  readonly session: BrowserSession | null;
  readonly accountName: string;
  readonly links: readonly PageLink[];
}

export function textOfPage(page: Page, frame: Frame): string {
  const { title, children, isNarrow = false, isFull = false, scripts = [], stylesheets = [] } = page;
  const { base, csrf, session, accountName, links } = frame;
  const signOut = `${base}/sign-out`;
  const person =
    session === null ? null : { name: session.user.username, href: `${base}/me`, account: accountName, signOut };
  const banner = session === null || session.impersonator === null ? {} : { banner: Banner(session, frame) };
  return documentOf(
    Layout({
      title,
      product: PRODUCT,
      home: `${base}/`,
      stylesheets: [`${base}${STYLESHEET_PATH}?v=${VERSION}`, ...stylesheets],
      scripts,
      links,
      person,
      csrf,
      isNarrow,
      isFull,
      children,
      ...banner,
    }),
  );
}

function Banner({ user, impersonator }: BrowserSession, { base, csrf, accountName }: Frame): Content {
  return [
    html`<p>You are <strong>${impersonator?.username}</strong> and act as <strong>${user.username}</strong> in the
      account ${accountName}. What you do is recorded under both names.</p>`,
    Form({ action: `${base}/sign-out`, csrf, children: Button({ words: "End, and sign out", small: true }) }),
  ];
}
