/**
 * Derives what the option schemas and the register of errors already say: the JSON Schemas for editors, and
 * the reference pages. `node config/generate.ts` writes them; `--check` fails when one is stale.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import type { RegisterEntry } from "#core/register/entry.ts";
import { REGISTER } from "#core/register.ts";
import { gatewayConfig } from "#gateway/config.ts";
import { metricsReference } from "#gateway/operations/metrics-reference.ts";
import { hubRegistry } from "#hub/metrics.ts";
import { hubOptions } from "#hub/options.ts";
import { aggregatesPage } from "./aggregates-page.ts";
import { rightsPage, routesOfHub } from "./rights-page.ts";
import { specificationCoverage } from "./specification-coverage.ts";

interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
  readonly secret?: boolean;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
}

const root = join(import.meta.dirname, "..");

function schemaOf(schema: z.ZodType): JsonSchema {
  return z.toJSONSchema(schema, { io: "input", unrepresentable: "any", reused: "inline" }) as JsonSchema;
}

function referencePage(title: string, intro: string, schema: JsonSchema): string {
  const lines = [`# ${title}`, "", intro, ""];
  for (const [name, section] of Object.entries(schema.properties ?? {})) {
    lines.push(`## \`${name}\``, "", section.description ?? "", "");
    const rows = settingRows(section, "");
    if (rows.length > 0) lines.push("| setting | type | default | meaning |", "|---|---|---|---|", ...rows, "");
    else lines.push(`Type ${typeWords(section)}${defaultWords(section)}.`, "");
  }
  return lines.join("\n");
}

function settingRows(schema: JsonSchema, prefix: string): string[] {
  const variants = variantsOf(schema);
  const rows: string[] = [];
  const seen = new Set<string>();
  for (const one of [schema, ...variants]) {
    for (const [name, field] of Object.entries(one.properties ?? {})) {
      const path = `${prefix}${name}`;
      const of = KINDS.map((kind) => one.properties?.[kind]?.const).find((value) => value !== undefined);
      const key = `${path} ${JSON.stringify({ ...field, const: undefined })}`;
      if (seen.has(key)) continue;
      seen.add(key);
      const only =
        variants.length > 1 && of !== undefined && field.const === undefined && !everywhere(variants, name)
          ? ` (${of})`
          : "";
      const required = (one.required ?? []).includes(name) && field.default === undefined ? "required" : "";
      const inner = settingRows(field, `${path}.`);
      const byDefault = defaultWords(field) === "" ? required : `\`${JSON.stringify(field.default)}\``;
      rows.push(`| \`${path}\`${only} | ${typeWords(field)} | ${byDefault} | ${meaning(field)} |`);
      rows.push(...inner);
    }
  }
  return rows;
}

/** Settings whose value decides which others there are. */
const KINDS: readonly string[] = ["kind", "from"];

/** The forms that a section, or an item of it, may have. */
function variantsOf(schema: JsonSchema): readonly JsonSchema[] {
  const inner = schema.oneOf ?? schema.anyOf ?? [];
  const items = [schema, ...inner].flatMap(({ items: one }) => (one === undefined ? [] : [one]));
  return [...items.flatMap((one) => [one, ...(one.oneOf ?? one.anyOf ?? [])]), ...inner];
}

function everywhere(variants: readonly JsonSchema[], name: string): boolean {
  return variants.every(({ properties }) => properties === undefined || properties[name] !== undefined);
}

function meaning(field: JsonSchema): string {
  const example = field.examples?.[0] === undefined ? "" : ` Example: \`${JSON.stringify(field.examples[0])}\`.`;
  const secret = field.secret === true ? " Secret: best given as `${env:NAME}` or `${file:PATH}`." : "";
  return `${field.description ?? ""}${example}${secret}`.replaceAll("|", "\\|").replaceAll("\n", " ");
}

function typeWords(schema: JsonSchema): string {
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``;
  if (schema.enum !== undefined) return schema.enum.map((one) => `\`${String(one)}\``).join(", ");
  const variants = schema.anyOf ?? schema.oneOf;
  if (variants !== undefined) return [...new Set(variants.map(typeWords))].join(" or ");
  if (schema.type === "array") return `list of ${schema.items === undefined ? "anything" : typeWords(schema.items)}`;
  return Array.isArray(schema.type) ? schema.type.join(" or ") : String(schema.type ?? "anything");
}

function defaultWords(schema: JsonSchema): string {
  return schema.default === undefined || typeof schema.default === "object"
    ? ""
    : `, default \`${JSON.stringify(schema.default)}\``;
}

function errorsPage(): string {
  const rows = Object.entries(REGISTER).map(
    ([code, { title, hint, again }]: readonly [string, RegisterEntry]) =>
      `| \`${code}\` | ${title} | ${again === undefined ? "" : `${again} `}${hint} |`,
  );
  return [
    "# Errors",
    "",
    "Every error and every reason of a run carries a stable code. The words around it say " +
      "what it was about; this page says what to do.",
    "",
    "| code | what | what to do |",
    "|---|---|---|",
    ...rows,
    "",
  ].join("\n");
}

const json = (value: unknown) => `${JSON.stringify(value, null, 2)}\n`;
const SECRETS =
  "Durations are written `250ms`, `5s`, `10m`, `2h`, `7d`; sizes `64KB`, `4MB`, `1GiB`. " +
  "`${env:NAME}` and `${file:PATH}` stand for secrets. Unknown keys are errors.";

const coverage = specificationCoverage(root);

const derived: Readonly<Record<string, string>> = {
  "config/gateway.schema.json": json(schemaOf(gatewayConfig)),
  "config/hub.schema.json": json(schemaOf(hubOptions)),
  "docs/aggregates.md": aggregatesPage(),
  "docs/configuration.md": referencePage(
    "Configuration of the gateway",
    `For \`headgate gateway -c FILE\`. An editor completes it with ` +
      `[\`config/gateway.schema.json\`](../config/gateway.schema.json); ` +
      `[\`config/demo.gateway.yaml\`](../config/demo.gateway.yaml) is an example. ${SECRETS} ` +
      "Relative paths are relative to the file.",
    schemaOf(gatewayConfig),
  ),
  "docs/hub-configuration.md": referencePage(
    "Configuration of the hub",
    `For \`headgate hub -c FILE\`. [\`config/demo.hub.yaml\`](../config/demo.hub.yaml) is an example. ${SECRETS}`,
    schemaOf(hubOptions),
  ),
  "docs/errors.md": errorsPage(),
  "docs/hub-rights.md": rightsPage(await routesOfHub()),
  "docs/metrics.md": metricsReference(hubRegistry()),
  "docs/dev/specification-coverage.md": coverage.page,
};

const check = process.argv.includes("--check");
const stale = Object.entries(derived).filter(([path, text]) => {
  const at = join(root, path);
  return !existsSync(at) || readFileSync(at, "utf8") !== text;
});
for (const [path, text] of stale) {
  if (check) process.stderr.write(`${path} is stale: run \`npm run generate\`\n`);
  else {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
    process.stdout.write(`wrote ${path}\n`);
  }
}
for (const fault of coverage.faults) process.stderr.write(`${fault}\n`);
process.exitCode = coverage.faults.length > 0 || (check && stale.length > 0) ? 1 : 0;
