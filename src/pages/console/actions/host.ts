/**
 * Shows the dialog of an action beside the page. The list that the action was begun from may lose its files as soon as
 * it is performed, and the person still has to see what became of it.
 */
import { createContext } from "preact";
import { useContext, useState } from "preact/hooks";
import { type Content, type Element, html } from "../../kit/html.ts";
import type { Action } from "../contract.ts";
import { ActionDialog } from "./dialog.ts";
import type { Target } from "./subjects.ts";

export interface BegunAction {
  readonly action: Action;
  readonly targets: readonly Target[];
  onDone(): void;
}

const BeginContext = createContext<(begun: BegunAction) => void>(() => {});

export function useBeginAction(): (begun: BegunAction) => void {
  return useContext(BeginContext);
}

export function ActionHost({ children }: { readonly children?: Content }): Element {
  const [begun, setBegun] = useState<BegunAction | null>(null);
  return html`<${BeginContext.Provider} value=${setBegun}>${children}
    ${begun === null ? null : html`<${ActionDialog} ...${begun} onClose=${() => setBegun(null)} />`}
  </${BeginContext.Provider}>`;
}
