/** The frames of the console's pages: the live one, and those that work without a script. */
import { hash } from "node:crypto";
import { type Content, type Element, html, Layout, STYLESHEET } from "#pages/kit/index.ts";
import { documentOf } from "#pages/kit/render.ts";

const PRODUCT = "Headgate console";
/** Browsers keep the stylesheet until it changes. */
export const STYLESHEET_NAME = `kit-${hash("sha256", STYLESHEET, "hex").slice(0, 12)}.css`;

interface LiveFrame {
  readonly base: string;
  readonly csrf: string;
  readonly script: string;
  readonly stylesheet: string;
}

/** The one page of the console; its script draws what its address says. */
export function livePage({ base, csrf, script, stylesheet }: LiveFrame): string {
  const href = (name: string) => `${base}/console/assets/${name}`;
  return documentOf(
    html`<html lang="en"><head>
    <meta charset="utf-8" />
    <title>${PRODUCT}</title>
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="referrer" content="no-referrer" />
    <meta name="csrf-token" content=${csrf} />
    <link rel="icon" href="data:," />
    <link rel="stylesheet" href=${href(STYLESHEET_NAME)} />
    <link rel="stylesheet" href=${href(stylesheet)} />
    <script type="module" src=${href(script)}></script>
  </head><body>
    <div id="console" data-base=${base}><noscript>
      The console needs JavaScript; the commands of headgate work without.
    </noscript></div>
  </body></html>` as Element,
  );
}

interface StillFrame {
  readonly base: string;
  readonly title: string;
  readonly children: Content;
}

export function stillPage({ base, title, children }: StillFrame): string {
  return documentOf(
    Layout({
      // Forms carry their token, and there is no script that would need it.
      ...{ title, csrf: "", children, product: PRODUCT, isNarrow: true, links: [], person: null },
      home: `${base}/console`,
      stylesheets: [`${base}/console/assets/${STYLESHEET_NAME}`],
    }),
  );
}

/**
 * Leads to another page of ours by a page instead of a redirect: a browser that comes from another site keeps back the
 * cookie on every redirect, and brings it with the address that this page names.
 */
export function passagePage(base: string, path: string): string {
  const href = base + path;
  return documentOf(
    html`<html lang="en"><head>
    <meta charset="utf-8" />
    <title>${PRODUCT}</title>
    <meta http-equiv="refresh" content=${`0;url=${href}`} />
    <link rel="icon" href="data:," />
  </head><body><p><a href=${href}>Open the console</a></p></body></html>` as Element,
  );
}
