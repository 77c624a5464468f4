/** The actions that the chosen files permit. */
import { type Element, html } from "../../kit/html.ts";
import type { Action } from "../contract.ts";
import { Act } from "../parts.ts";
import { useRefusal } from "../person.ts";
import { TEXTS } from "../texts.ts";
import { useBeginAction } from "./host.ts";
import { type Actable, actionsOf, targetOf } from "./subjects.ts";

interface BarProps {
  readonly items: readonly Actable[];
  /** How many there are to choose from; one needs no choice. */
  readonly all: number;
  onChanged(): void;
}

export function ActionBar({ items, all, onChanged }: BarProps): Element {
  const beginAction = useBeginAction();
  const viewer = useRefusal();
  const choices = actionsOf(items);
  const begin = (action: Action) => {
    const targets = items.flatMap((item) => (item.actions.includes(action) ? (targetOf(action, item) ?? []) : []));
    // Files of one drop name it once.
    const known = new Map(targets.map((target) => [JSON.stringify(target.subject), target]));
    beginAction({ action, targets: [...known.values()], onDone: onChanged });
  };
  const button = ({ action, count }: { readonly action: Action; readonly count: number }) => {
    const words = TEXTS.actions.buttons[action](count, all === 1);
    const kind = action === "forget" || action === "cancel" ? "danger" : "plain";
    return html`<${Act} key=${action} ...${{ words, kind, refusal: viewer }} act=${() => begin(action)} />`;
  };
  return html`<div class="action-bar" role="group" aria-label=${TEXTS.actions.label}>
    ${all === 1 ? null : html`<span class="detail" role="status">${TEXTS.actions.chosen(items.length, all)}</span>`}
    ${choices.map(button)}
  </div>`;
}
