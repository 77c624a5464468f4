/** The frame of every page: its head, a bar with links and the person, a banner, and the content. */
import { Button, Form } from "./forms.ts";
import { type Content, type Element, html } from "./html.ts";

export interface PageLink {
  readonly href: string;
  readonly words: string;
  readonly isCurrent?: boolean;
}

interface SignedIn {
  /** Name of the person, and where the link of it leads. */
  readonly name: string;
  readonly href: string;
  readonly account: string;
  readonly signOut: string;
}

export interface LayoutProps {
  readonly title: string;
  readonly product: string;
  readonly home: string;
  readonly stylesheets: readonly string[];
  /** Scripts of our own address; none without. */
  readonly scripts?: readonly string[];
  readonly links: readonly PageLink[];
  /** Null: no person has signed in. */
  readonly person: SignedIn | null;
  readonly csrf: string;
  readonly banner?: Content;
  /** A page that is one form. */
  readonly isNarrow?: boolean;
  /** A page as wide as the window. */
  readonly isFull?: boolean;
  readonly children: Content;
}

export function Layout(props: LayoutProps): Element {
  const { title, product, stylesheets, scripts = [], csrf, banner, isNarrow = false, isFull = false, children } = props;
  const width = isNarrow ? "narrow" : isFull ? "full" : "wide";
  return html`<html lang="en"><head>
    <meta charset="utf-8" />
    <title>${`${title} · ${product}`}</title>
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="referrer" content="no-referrer" />
    <meta name="csrf-token" content=${csrf} />
    <link rel="icon" href="data:," />
    ${stylesheets.map((href) => html`<link rel="stylesheet" href=${href} />`)}
    ${scripts.map((src) => html`<script type="module" src=${src}></script>`)}
  </head><body>
    <a class="skip" href="#content">Skip to the content</a>
    ${banner === undefined ? null : html`<aside class="banner" aria-label="Important"><div>${banner}</div></aside>`}
    ${Bar(props)}
    <main id="content" tabindex="-1" class=${width}><h1>${title}</h1>${children}</main>
  </body></html>`;
}

function Bar({ product, home, links, person, csrf }: LayoutProps): Element {
  return html`<header class="bar"><div>
    <a class="brand" href=${home}>${product}</a>
    ${links.length === 0 ? null : html`<nav aria-label="Main">${Links(links)}</nav>`}
    ${
      person === null
        ? null
        : html`<div class="who"><a href=${person.href}>${person.name}</a><span>${person.account}</span>${Form({
            action: person.signOut,
            csrf,
            children: Button({ words: "Sign out", kind: "plain", small: true }),
          })}</div>`
    }
  </div></header>`;
}

/** Links between the pages of one subject. */
export function Tabs({ label, links }: { readonly label: string; readonly links: readonly PageLink[] }): Element {
  return html`<nav class="tabs" aria-label=${label}>${Links(links)}</nav>`;
}

function Links(links: readonly PageLink[]): Element {
  return html`<ul>${links.map(
    ({ href, words, isCurrent = false }) =>
      html`<li><a href=${href} aria-current=${isCurrent ? "page" : undefined}>${words}</a></li>`,
  )}</ul>`;
}
