/** The syntax of templates, such as `{meter}-{channel}`. */

export type Part =
  | string
  | { readonly name: string /** Digits to fill up to with zeros at the left. */; readonly digits: number };

/** The parts of a template, or its fault. `{{` and `}}` are braces, `{name|0000}` has at least four digits. */
export function parseTemplate(template: string): readonly Part[] | string {
  const parts: Part[] = [];
  const pieces = template.matchAll(/\{\{|\}\}|\{([^{}]*)\}|[^{}]+|[{}]/g);
  for (const [piece, name] of pieces) {
    if (piece === "{" || piece === "}")
      return `it has a brace without its other half; write ${piece}${piece} for a brace as such`;
    if (name === undefined) parts.push(piece === "{{" ? "{" : piece === "}}" ? "}" : piece);
    else if (name.trim() === "") return "it has braces without a name inside";
    else {
      const [, before, zeros] = /^(.*)\|(0+)$/s.exec(name) ?? [];
      parts.push({ name: (before ?? name).trim(), digits: zeros?.length ?? 0 });
    }
  }
  return parts;
}
