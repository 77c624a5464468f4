/** Files of the values that are shown. */
import { useState } from "preact/hooks";
import { type Element, html } from "../kit/html.ts";
import { type Parameters, save } from "./hub.ts";
import type { Loaded } from "./loaded.ts";
import { TEXTS } from "./texts.ts";

const FORMATS = [{ words: "JSON", extension: "json", path: "/data" }];

interface ExportsProps {
  readonly loaded: Loaded;
  onFault(thrown: unknown): void;
}

export function Exports({ loaded, onFault }: ExportsProps): Element {
  const [isBusy, setBusy] = useState(false);
  const name = `${loaded.from}_${loaded.to}`.replaceAll(":", "");
  const begin = (path: string, parameters: Parameters, file: string) => {
    setBusy(true);
    save(path, parameters, file)
      .catch(onFault)
      .finally(() => setBusy(false));
  };
  const buttons = FORMATS.map(({ words, extension, path }) => {
    const act = () => begin(path, loaded.question, `${name}.${extension}`);
    return html`<button type="button" class="plain small" disabled=${isBusy} onClick=${act}>${words}</button>`;
  });
  return html`<div class="buttons" role="group" aria-label=${TEXTS.export}>
    <span>${TEXTS.export}:</span>${buttons}
  </div>`;
}
