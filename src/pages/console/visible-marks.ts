/**
 * Shows marks that hide or that turn the direction of a text by their numbers in all that the console renders: names of
 * files, drops and triggers come from elsewhere, and one text that was forgotten would be enough to deceive.
 */
import { options } from "preact";
import { visible } from "./words.ts";

/** Attributes that are shown or read out. Others are addresses and values, and stay as they are. */
const SHOWN = ["title", "aria-label", "alt", "placeholder", "label"] as const;

interface Node {
  readonly type: unknown;
  /** Of an element; of a text, what it says. */
  props: unknown;
}

/** Call it before anything is rendered. */
export function showHiddenMarks(): void {
  const { vnode: before } = options;
  options.vnode = (node) => {
    showIn(node);
    before?.(node);
  };
}

function showIn(node: Node): void {
  if (typeof node.props === "string") node.props = visible(node.props);
  if (typeof node.type !== "string") return;
  const props = node.props as Record<string, unknown>;
  for (const name of SHOWN) if (typeof props[name] === "string") props[name] = visible(props[name]);
}
