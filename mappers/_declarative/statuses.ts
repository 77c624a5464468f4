/** Status columns: their values keep, drop, refuse or tag a row. */
import { RowError } from "headgate/mapper";
import { nearest } from "./columns.ts";
import type { ActionSettings, StatusSettings } from "./settings.ts";
import { type Cells, cellText, type Scope } from "./template.ts";

export type Tags = Readonly<Record<string, string>>;

/** Tags of the row, none, or `drop`. Throws a `RowError` for a row to be refused. */
export type StatusReader = (cells: Cells) => Tags | undefined | "drop";

type Action = "keep" | "drop" | "reject" | Tags;

export function bindStatus(settings: StatusSettings | undefined, scope: Scope): StatusReader | undefined {
  if (settings === undefined || settings.length === 0) return undefined;
  const rules = settings.map(({ column, ...actions }) => {
    const at = scope.columns.find(column);
    return { at, name: scope.columns.name(at), act: bindActions(actions) };
  });
  const merged = new Map<Tags, Map<Tags, Tags>>();
  return (cells) => {
    let tags: Tags | undefined;
    for (const { at, name, act } of rules) {
      const action = act(cellText(cells[at], name), name);
      if (action === "drop") return "drop";
      if (action !== undefined) tags = tags === undefined ? action : merge(merged, tags, action);
    }
    return tags;
  };
}

/** The meaning of a status text. Throws a `RowError` that names the column for a status to be refused. */
export function bindActions({
  values,
  otherwise,
}: ActionSettings): (text: string, column: string) => Tags | undefined | "drop" {
  const actions = new Map(Object.entries(values).map(([text, action]) => [text.trim(), actionOf(action)]));
  const other = actionOf(otherwise);
  return (text, column) => {
    const action = actions.get(text) ?? other;
    if (action === "reject") throw refused(text, column, [...actions.keys()], actions.has(text));
    return action === "keep" ? undefined : action;
  };
}

function actionOf(action: string): Action {
  if (action === "keep" || action === "drop" || action === "reject") return action;
  return Object.freeze(
    Object.fromEntries(
      action.split("|").map((tag) => {
        const colon = tag.indexOf(":");
        return [tag.slice(0, colon).trim(), tag.slice(colon + 1).trim()];
      }),
    ),
  );
}

/** Joined tags of two columns; cached, so that rows share them. */
function merge(merged: Map<Tags, Map<Tags, Tags>>, one: Tags, other: Tags): Tags {
  const known = merged.get(one) ?? new Map<Tags, Tags>();
  merged.set(one, known);
  const tags = known.get(other) ?? Object.freeze({ ...one, ...other });
  known.set(other, tags);
  return tags;
}

function refused(text: string, column: string, known: readonly string[], listed: boolean): RowError {
  if (listed) return new RowError(`rows with the status "${text.slice(0, 60)}" are refused`, { column, text });
  const near = nearest(text, known);
  return new RowError(`the status "${text.slice(0, 60)}" is not among those of the settings`, {
    column,
    text,
    hint:
      near === undefined || near === ""
        ? "Add it to `status`, or say by `otherwise` what becomes of others."
        : `Is ${JSON.stringify(near)} meant? Else add it to \`status\`.`,
  });
}
