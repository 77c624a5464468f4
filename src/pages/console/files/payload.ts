/** A batch as it is sent. */
import { useState } from "preact/hooks";
import { type Element, html } from "../../kit/html.ts";
import type { FilePage as File, Payload } from "../contract.ts";
import { Check, Choice, Loaded } from "../parts.ts";
import { useQuery } from "../query.ts";
import { go, hrefOf } from "../router.ts";
import { TEXTS } from "../texts.ts";
import { bytes } from "../words.ts";

const { payload: words } = TEXTS;
/** Formatted, it would take long to show. */
const FORMATTED_MOST = 300_000;

export function PayloadView({ file, search }: ViewProps): Element {
  const batches = file.runs.flatMap(({ run, batches }) => batches.map((batch) => ({ run: run.id, ...batch })));
  const last = batches.at(-1);
  const run = search.get("run") ?? last?.run ?? null;
  const ofRun = batches.filter((one) => one.run === run);
  const batch = search.get("batch") ?? ofRun[0]?.sequence ?? null;
  const payload = useQuery<Payload>(batch === null ? null : `/files/${file.arrival.id}/payload`, { run, batch });
  const [isFormatted, setFormatted] = useState(true);
  if (batch === null) return html`<p class="muted">${TEXTS.file.noBatches}</p>`;
  const options = around(
    batches,
    batches.findIndex((one) => one.run === run && one.sequence === batch),
  ).map((one) => ({
    value: `${one.run} ${one.sequence}`,
    words: words.batch(one.sequence, one.points, one.operationId),
  }));
  const open = (chosen: string) => {
    const [chosenRun = "", sequence = ""] = chosen.split(" ");
    go(hrefOf(`/files/${file.arrival.id}`, { view: "payload", run: chosenRun, batch: sequence }));
  };
  return html`<div class="toolbar">
      ${Choice({ id: "batch", label: words.choose, value: `${run} ${batch}`, options, set: open })}
      ${Check({ id: "formatted", words: words.formatted, checked: isFormatted, set: setFormatted })}
    </div>
    <${Loaded} of=${payload}>${({ text, isCut, bytes: size }: Payload) => html`
      <p class="detail">${isCut ? words.cut(bytes(size)) : bytes(size)}</p>
      <${JsonText} text=${text} isFormatted=${isFormatted && !isCut} label=${words.label} />`}</${Loaded}>`;
}

/** Choices to each side of the current one, and at both ends of the list: of thousands a browser shows none well. */
const NEAR = 100;

function around<Item>(all: readonly Item[], current: number): readonly Item[] {
  return all.filter((_, at) => at < NEAR || at >= all.length - NEAR || (at > current - NEAR && at < current + NEAR));
}

interface JsonTextProps {
  readonly text: string;
  readonly isFormatted: boolean;
  readonly label: string;
}

export function JsonText({ text, isFormatted, label }: JsonTextProps): Element {
  return html`<pre class="code scroll" tabindex="0" role="region" aria-label=${label}>${
    isFormatted && text.length < FORMATTED_MOST ? formatted(text) : text
  }</pre>`;
}

function formatted(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    // A part of a payload is no JSON: it is shown as it is.
    return text;
  }
}

export interface ViewProps {
  readonly file: File;
  readonly search: URLSearchParams;
}
