/** A sample from this computer, chosen or dropped on the page. */
import { useState } from "preact/hooks";
import { type Element, html } from "../../kit/html.ts";
import { post } from "../api.ts";
import { Fault } from "../parts.ts";
import { useRefusal } from "../person.ts";
import { TEXTS } from "../texts.ts";
import { bytes } from "../words.ts";

const { playground: words } = TEXTS;

export interface Sample {
  readonly id: string;
  readonly name: string;
  readonly size: number;
}

interface ChoiceProps {
  readonly sample: Sample | null;
  onSample(sample: Sample): void;
}

export function SampleChoice({ sample, onSample }: ChoiceProps): Element {
  const [fault, setFault] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const send = (file: File | undefined) => {
    if (file === undefined) return;
    setBusy(true);
    setFault(null);
    post<{ sample: string; name: string; bytes: number }>("/playground/samples", file, {
      parameters: { name: file.name },
    })
      .then((taken) => onSample({ id: taken.sample, name: taken.name, size: taken.bytes }), setFault)
      .finally(() => setBusy(false));
  };
  return html`<${Fault} fault=${fault} />
    ${sample === null ? null : html`<p><bdi>${sample.name}</bdi> <span class="detail">${bytes(sample.size)}</span></p>`}
    <${FileField} ...${{ id: "sample-file", label: words.upload, isBusy, send }} />`;
}

interface FileFieldProps {
  readonly id: string;
  readonly label: string;
  readonly isBusy: boolean;
  send(file: File | undefined): void;
}

/** A field for a file, on which one can be dropped. */
export function FileField({ id, label, isBusy, send }: FileFieldProps): Element {
  const [isOver, setOver] = useState(false);
  const refusal = useRefusal();
  const dropped = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    if (refusal === null) send(event.dataTransfer?.files[0]);
  };
  const over = (event: DragEvent) => {
    event.preventDefault();
    setOver(true);
  };
  const chosen = (event: Event) => {
    const field = event.target as HTMLInputElement;
    send(field.files?.[0]);
    field.value = "";
  };
  return html`<div class=${`drop-zone${isOver ? " over" : ""}`} onDragOver=${over} onDragLeave=${() => setOver(false)}
    onDrop=${dropped}>
    <label for=${id}>${label}</label>
    <input id=${id} type="file" onChange=${chosen} disabled=${refusal !== null || isBusy} />
    ${refusal === null ? null : html`<p class="hint">${refusal}</p>`}
    <p class="hint" role="status">${isBusy ? words.uploading : ""}</p></div>`;
}
