/** The actions that the chosen files permit. */

import { createContext } from "preact";
import { useContext, useState } from "preact/hooks";
import { type Content, type Element, html } from "../../kit/html.ts";
import type { Action } from "../contract.ts";
import { Act } from "../parts.ts";
import { useRefusal } from "../person.ts";
import { TEXTS } from "../texts.ts";
import { ActionDialog } from "./dialog.ts";
import { type Actable, actionsOf, type Target, targetOf } from "./subjects.ts";

interface BarProps {
  readonly items: readonly Actable[];
  /** How many there are to choose from; one needs no choice. */
  readonly all: number;
  onChanged(): void;
}

const BeginContext = createContext<(begun: BegunAction) => void>(() => {});

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

// Shows the dialog of an action beside the page. The list that the action was begun from may lose its files as soon as
// it is performed, and the person still has to see what became of it.

interface BegunAction {
  readonly action: Action;
  readonly targets: readonly Target[];
  onDone(): void;
}

function useBeginAction(): (begun: BegunAction) => void {
  return useContext(BeginContext);
}

export function ActionHost({ children }: { readonly children?: Content }): Element {
  const [begun, setBegun] = useState<BegunAction | null>(null);
  return html`<${BeginContext.Provider} value=${setBegun}>${children}
    ${begun === null ? null : html`<${ActionDialog} ...${begun} onClose=${() => setBegun(null)} />`}
  </${BeginContext.Provider}>`;
}
