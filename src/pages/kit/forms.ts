/** Parts of forms. They work without a script. */
import { type Content, type Element, html } from "./html.ts";

/** Faults by the names of fields; `""` is one of the whole form. */
export type Faults = Readonly<Record<string, string>>;

interface FormProps {
  /** Address that the form is sent to. */
  readonly action: string;
  /** Proves that the form is one of our own pages. */
  readonly csrf: string;
  readonly faults?: Faults;
  /** Further values that the form carries. */
  readonly carried?: Readonly<Record<string, string>>;
  readonly children: Content;
}

/** Its faults stand on top, with links to their fields. */
export function Form({ action, csrf, faults = {}, carried = {}, children }: FormProps): Element {
  const hidden = Object.entries({ csrf, ...carried });
  return html`<form method="post" action=${action} novalidate>
    ${FaultSummary({ faults })}
    ${hidden.map(([name, value]) => html`<input type="hidden" name=${name} value=${value} />`)}
    ${children}
  </form>`;
}

export function FaultSummary({ faults }: { readonly faults: Faults }): Element | null {
  const found = Object.entries(faults);
  if (found.length === 0) return null;
  const items = found.map(([name, words]) =>
    name === "" ? html`<li>${words}</li>` : html`<li><a href=${`#${name}`}>${words}</a></li>`,
  );
  return html`<div class="notice danger" role="alert"><h2>This did not work</h2><ul>${items}</ul></div>`;
}

interface FieldProps {
  readonly name: string;
  readonly label: string;
  readonly type?: "text" | "password" | "email" | "date" | "number" | "search";
  readonly value?: string;
  readonly hint?: Content;
  readonly faults?: Faults;
  /** `username`, `current-password`, `new-password`, `one-time-code`, … */
  readonly autocomplete?: string;
  readonly required?: boolean;
  /** The first field to fill of a page that is nothing but a form. */
  readonly focused?: boolean;
  readonly inputmode?: "numeric" | "email" | "text";
  readonly readonly?: boolean;
  readonly min?: string;
  readonly max?: string;
}

export function Field(props: FieldProps): Element {
  const { name, label, type = "text", value = "", hint, faults = {}, autocomplete, required, focused, ...more } = props;
  const isText = type === "text" || type === "search" || type === "email";
  return html`<div class="field">
    <label for=${name}>${label}${required === false ? html` <span class="muted">(optional)</span>` : null}</label>
    ${Words({ name, hint, faults })}
    <input id=${name} name=${name} type=${type} value=${type === "password" ? "" : value}
      autocomplete=${autocomplete ?? "off"} required=${required !== false} autofocus=${focused === true}
      inputmode=${more.inputmode} readonly=${more.readonly === true} min=${more.min} max=${more.max}
      autocapitalize=${isText ? "none" : undefined} spellcheck=${isText ? "false" : undefined}
      ...${described(name, hint, faults)} />
  </div>`;
}

interface SelectProps {
  readonly name: string;
  readonly label: string;
  readonly options: readonly { readonly value: string; readonly words: string }[];
  readonly value?: string;
  readonly hint?: Content;
  readonly faults?: Faults;
}

export function Select({ name, label, options, value, hint, faults = {} }: SelectProps): Element {
  return html`<div class="field">
    <label for=${name}>${label}</label>${Words({ name, hint, faults })}
    <select id=${name} name=${name} ...${described(name, hint, faults)}>${options.map(
      (one) => html`<option value=${one.value} selected=${one.value === value}>${one.words}</option>`,
    )}</select>
  </div>`;
}

interface ChecksProps {
  readonly name: string;
  readonly legend: string;
  readonly options: readonly { readonly value: string; readonly words: Content; readonly hint?: string }[];
  readonly values: readonly string[];
  readonly hint?: Content;
  readonly faults?: Faults;
}

/** Several values of one name. */
export function Checks({ name, legend, options, values, hint, faults = {} }: ChecksProps): Element {
  const boxes = options.map(({ value, words, hint: own }, at) => {
    // The first one has the name of the group as its id, to which the summary of faults leads.
    const id = at === 0 ? name : `${name}-${at}`;
    return html`<div class="check">
      <input type="checkbox" id=${id} name=${name} value=${value} checked=${values.includes(value)} />
      <label for=${id}>${words}${own === undefined ? null : html` <span class="hint">${own}</span>`}</label>
    </div>`;
  });
  return html`<fieldset ...${described(name, hint, faults)}><legend>${legend}</legend>
    ${Words({ name, hint, faults })}${boxes}</fieldset>`;
}

interface ButtonProps {
  readonly words: string;
  readonly kind?: "main" | "plain" | "danger";
  readonly small?: boolean;
  /** Says on what it works, where equal buttons are on a page. */
  readonly about?: string;
}

export function Button({ words, kind = "main", small = false, about }: ButtonProps): Element {
  return html`<button type="submit" class=${`${kind}${small ? " small" : ""}`}>${words}${
    about === undefined ? null : html`<span class="hidden"> ${about}</span>`
  }</button>`;
}

interface WordsProps {
  readonly name: string;
  readonly hint: Content;
  readonly faults: Faults;
}

function Words({ name, hint, faults }: WordsProps): Content {
  const fault = faults[name];
  return [
    hint === undefined ? null : html`<p class="hint" id=${`${name}-hint`}>${hint}</p>`,
    fault === undefined ? null : html`<p class="fault" id=${`${name}-fault`}>${fault}</p>`,
  ];
}

function described(name: string, hint: Content, faults: Faults): object {
  const ids = [
    ...(hint === undefined ? [] : [`${name}-hint`]),
    ...(faults[name] === undefined ? [] : [`${name}-fault`]),
  ];
  return {
    ...(ids.length === 0 ? {} : { "aria-describedby": ids.join(" ") }),
    ...(faults[name] === undefined ? {} : { "aria-invalid": "true" }),
  };
}
