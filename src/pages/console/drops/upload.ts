/** A file that a person puts into a drop, which is taken as any other. */
import { useState } from "preact/hooks";
import { type Element, html } from "../../kit/html.ts";
import { FileField, useUpload } from "../file-field.ts";
import { Fault } from "../parts.ts";
import { hrefOf, Link } from "../router.ts";
import { TEXTS } from "../texts.ts";
import { bytes } from "../words.ts";

const { drops: words } = TEXTS;

interface Added {
  readonly path: string;
  readonly bytes: number;
}

export function UploadCard({ drop }: { readonly drop: string }): Element {
  const [added, setAdded] = useState<readonly Added[]>([]);
  const { fault, ...upload } = useUpload<Added>(`/drops/${encodeURIComponent(drop)}/files`, (one) =>
    setAdded((before) => [one, ...before]),
  );
  return html`<section class="card" aria-labelledby="upload"><h2 id="upload">${words.upload}</h2>
    <${Fault} fault=${fault} />
    <${FileField} ...${{ id: "upload-file", label: words.uploadLabel, ...upload }} />
    <div role="status"><ul class="plain-list">${added.map(
      (one) => html`<li>${words.uploaded(bytes(one.bytes))} <${Link}
        to=${hrefOf("/files", { q: one.path, drop })}><bdi>${one.path}</bdi></${Link}></li>`,
    )}</ul></div></section>`;
}
