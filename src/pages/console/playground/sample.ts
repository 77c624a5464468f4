/** A sample from this computer, chosen or dropped on the page. */
import { type Element, html } from "../../kit/html.ts";
import { FileField, useUpload } from "../file-field.ts";
import { Fault } from "../parts.ts";
import { TEXTS } from "../texts.ts";
import { bytes } from "../words.ts";

const { playground: words } = TEXTS;

export interface Sample {
  readonly id: string;
  readonly name: string;
  readonly size: number;
}

interface Taken {
  readonly sample: string;
  readonly name: string;
  readonly bytes: number;
}

interface ChoiceProps {
  readonly sample: Sample | null;
  onSample(sample: Sample): void;
}

export function SampleChoice({ sample, onSample }: ChoiceProps): Element {
  const { fault, ...upload } = useUpload<Taken>("/playground/samples", (taken) =>
    onSample({ id: taken.sample, name: taken.name, size: taken.bytes }),
  );
  return html`<${Fault} fault=${fault} />
    ${sample === null ? null : html`<p><bdi>${sample.name}</bdi> <span class="detail">${bytes(sample.size)}</span></p>`}
    <${FileField} ...${{ id: "sample-file", label: words.upload, ...upload }} />`;
}
