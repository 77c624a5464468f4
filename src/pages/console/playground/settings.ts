/** A form for the settings of a mapper. */
import { useEffect, useState } from "preact/hooks";
import { type Content, type Element, html } from "../../kit/html.ts";
import { Hint } from "../parts.ts";
import { TEXTS } from "../texts.ts";
import { found, kindOf, ordered, parse, type Schema, type Settings, textOf, withValue } from "./schema.ts";

const { playground: words } = TEXTS;
const FIRST_MOST = 8;
const GROUP_MOST = 2;
const UNITS = [
  "Wh",
  "kWh",
  "MWh",
  "GWh",
  "J",
  "MJ",
  "GJ",
  "W",
  "kW",
  "MW",
  "VA",
  "kVA",
  "kvar",
  "kvarh",
  "V",
  "A",
  "Hz",
];
const MORE_UNITS = ["m³", "Nm³", "l", "m³/h", "l/h", "°C", "K", "%", "bar", "Pa", "lx", "ppm", "m/s", "mm"];

interface FormProps {
  readonly schema: Schema;
  readonly settings: Settings;
  onChange(settings: Settings): void;
}

export function SettingsForm({ schema, settings, onChange }: FormProps): Element {
  const { first, more } = ordered(schema, settings, FIRST_MOST);
  const [sought, setSought] = useState("");
  const isSought = sought.trim() !== "";
  const fields = (names: readonly string[]) =>
    names.map((name) => {
      const { [name]: own = {} } = schema.properties ?? {};
      const required = schema.required?.includes(name) ?? false;
      return html`<${Field} key=${name} ...${{ path: [name], schema: own, required, settings, onChange }} />`;
    });
  return html`<div class="settings">
    <datalist id="zones">${["UTC", ...Intl.supportedValuesOf("timeZone")].map(
      (zone) => html`<option
      value=${zone} />`,
    )}</datalist>
    <datalist id="units">${[...UNITS, ...MORE_UNITS].map((unit) => html`<option value=${unit} />`)}</datalist>
    ${
      more.length === 0
        ? null
        : html`<div class="field"><label for="setting-search">${words.findSetting}</label>
            <input id="setting-search" type="search" value=${sought} autocomplete="off"
              onInput=${(event: Event) => setSought((event.target as HTMLInputElement).value)} /></div>`
    }
    ${isSought ? Found({ schema, settings, onChange, paths: found(schema, sought.trim()) }) : fields(first)}
    ${
      more.length === 0 || isSought
        ? null
        : html`<details><summary>${words.moreSettings(more.length)}</summary>${fields(more)}
      </details>`
    }
    <details><summary>${words.asJson}</summary><${JsonField} settings=${settings} onChange=${onChange} /></details>
  </div>`;
}

function Found({
  schema,
  settings,
  onChange,
  paths,
}: FormProps & { readonly paths: readonly (readonly string[])[] }): Content {
  if (paths.length === 0) return html`<p class="muted">${words.noSetting}</p>`;
  return paths.map((path) => {
    const own = path.reduce<Schema>((held, name) => held.properties?.[name] ?? {}, schema);
    const isRequired = path.length === 1 && (schema.required?.includes(path[0] ?? "") ?? false);
    return html`<${Field} key=${path.join(".")}
      ...${{ path, schema: own, required: isRequired, settings, onChange }} />`;
  });
}

interface FieldProps {
  readonly path: readonly string[];
  readonly schema: Schema;
  readonly required: boolean;
  /** Of the whole form. */
  readonly settings: Settings;
  onChange(settings: Settings): void;
}

function Field({ path, schema, required, settings, onChange }: FieldProps): Element {
  const name = path.at(-1) ?? "";
  const kind = kindOf(name, schema);
  const value = path.reduce<unknown>((held, part) => Object(held ?? {})[part], settings);
  const [typed, setTyped] = useState(textOf(kind, value));
  const [isFault, setFault] = useState(false);
  useEffect(() => {
    // A change from outside, as of a proposal; what is being typed stays as it is.
    if (JSON.stringify(parse(kind, schema, typed).value) !== JSON.stringify(value)) setTyped(textOf(kind, value));
  }, [JSON.stringify(value)]);
  if (kind === "group") return Group({ path, schema, required, settings, onChange });
  const id = `setting-${path.join("-")}`;
  const change = (event: Event) => {
    const text = (event.target as HTMLInputElement).value;
    setTyped(text);
    const parsed = parse(kind, schema, text);
    setFault(parsed.isFault);
    if (!parsed.isFault) onChange(withValue(settings, path, parsed.value));
  };
  const hinted = schema.description === undefined ? undefined : `${id}-hint`;
  const common = { id, "aria-describedby": hinted, "aria-invalid": isFault ? "true" : undefined, onInput: change };
  const byDefault = schema.default === undefined ? "" : words.byDefault(JSON.stringify(schema.default));
  return html`<div class="field"><label for=${id}>${name}${
    required
      ? html` <span class="muted">${words.required}
    </span>`
      : null
  }</label>
    ${Control(kind, schema, { ...common, value: typed }, byDefault)}
    ${isFault ? html`<p class="fault">${kind === "json" ? words.noJson : words.noNumber}</p>` : null}
    ${
      schema.description === undefined
        ? null
        : html`<p class="hint" id=${hinted}>
      <${Hint} text=${schema.description} /></p>`
    }</div>`;
}

type Props = Readonly<Record<string, unknown>> & { readonly value: string };

function Control(kind: ReturnType<typeof kindOf>, schema: Schema, props: Props, byDefault: string): Content {
  const option = (value: string, label: string) =>
    html`<option value=${value} selected=${value === props.value}>${label}</option>`;
  switch (kind) {
    case "choice":
      return html`<select ...${props}>${option("", byDefault || words.none)}${(schema.enum ?? []).map((one) =>
        option(String(one), one === " " ? words.blank : String(one)),
      )}</select>`;
    case "boolean":
      return html`<select ...${props}>
        ${option("", byDefault || words.none)}${option("true", words.yes)}${option("false", words.no)}</select>`;
    case "number":
      return html`<input ...${props} inputmode="decimal" placeholder=${byDefault} autocomplete="off" />`;
    case "json":
      return html`<textarea ...${props} rows=${Math.min(12, props.value.split("\n").length + 1)} spellcheck=${false}
        placeholder=${byDefault} class="mono"></textarea>`;
    default: {
      const list = kind === "zone" ? "zones" : kind === "unit" ? "units" : undefined;
      return html`<input ...${props} list=${list} placeholder=${byDefault} autocomplete="off" spellcheck=${false} />`;
    }
  }
}

function Group({ path, schema, settings, onChange }: FieldProps): Element {
  const held = path.reduce<unknown>((one, part) => Object(one ?? {})[part], settings);
  const { first, more } = ordered(schema, Object(held ?? {}), GROUP_MOST);
  const fields = (names: readonly string[]) =>
    names.map((name) => {
      const { [name]: own = {} } = schema.properties ?? {};
      const required = schema.required?.includes(name) ?? false;
      return html`<${Field} key=${name} ...${{ path: [...path, name], schema: own, required, settings, onChange }} />`;
    });
  return html`<details class="nested" open=${held !== undefined}><summary>${path.at(-1)}</summary>
    ${schema.description === undefined ? null : html`<p class="hint"><${Hint} text=${schema.description} /></p>`}
    ${fields(first)}
    ${
      more.length === 0
        ? null
        : html`<details><summary>${words.moreSettings(more.length)}</summary>${fields(more)}</details>`
    }</details>`;
}

function JsonField({ settings, onChange }: Pick<FormProps, "settings" | "onChange">): Element {
  const [typed, setTyped] = useState(JSON.stringify(settings, null, 2));
  const [isFault, setFault] = useState(false);
  useEffect(() => {
    if (JSON.stringify(parse("json", {}, typed).value) !== JSON.stringify(settings))
      setTyped(JSON.stringify(settings, null, 2));
  }, [JSON.stringify(settings)]);
  const change = (event: Event) => {
    const text = (event.target as HTMLTextAreaElement).value;
    setTyped(text);
    const { value, isFault: isWrong } = parse("json", {}, text === "" ? "{}" : text);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    setFault(isWrong || !isObject);
    if (!isWrong && isObject) onChange(value as Settings);
  };
  return html`<div class="field"><label for="settings-json">${words.asJson}</label>
    <textarea id="settings-json" class="mono" rows=${Math.min(20, typed.split("\n").length + 1)} value=${typed}
      spellcheck=${false}
      onInput=${change} aria-invalid=${isFault ? "true" : undefined}></textarea>
    ${isFault ? html`<p class="fault">${words.noJson}</p>` : null}</div>`;
}
