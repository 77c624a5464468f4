/** A field for a file of this computer, which is sent when it was chosen or dropped. */
import { useState } from "preact/hooks";
import { type Element, html } from "../kit/html.ts";
import { post } from "./api.ts";
import { useRefusal } from "./person.ts";
import { TEXTS } from "./texts.ts";

/** Sends files to an address below the operations API, under their names. */
export function useUpload<Answer>(path: string, onSent: (answer: Answer) => void) {
  const [fault, setFault] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const send = (file: File | undefined) => {
    if (file === undefined) return;
    setBusy(true);
    setFault(null);
    post<Answer>(path, file, { parameters: { name: file.name } })
      .then(onSent, setFault)
      .finally(() => setBusy(false));
  };
  return { fault, isBusy, send };
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
    <p class="hint" role="status">${isBusy ? TEXTS.playground.uploading : ""}</p></div>`;
}
