/** The position in a plot at which values are read: one for the plot and for the control below it. */
import type uPlot from "uplot";

type Listener = (x: number) => void;

export class Cursor {
  readonly #listeners = new Set<Listener>();
  #x: number | null = null;

  /** On the axis of the plot: seconds, or a share in percent. Null until one was chosen. */
  get x(): number | null {
    return this.#x;
  }

  move(x: number): void {
    if (x === this.#x) return;
    this.#x = x;
    for (const listener of this.#listeners) listener(x);
  }

  /** Returns what ends it. */
  listen(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

/** Hooks by which a plot moves the cursor, and shows where it is. `spotOf`: in pixels of the plot. */
export function cursorHooks(
  cursor: Cursor | undefined,
  xAt: (plot: uPlot, left: number, top: number) => number | null,
  spotOf: (plot: uPlot, x: number) => { readonly left: number; readonly top: number },
): uPlot.Hooks.Arrays {
  if (cursor === undefined) return {};
  let end: (() => unknown) | null = null;
  let isOwn = false;
  return {
    ready: [
      (plot) => {
        const show = (x: number) => {
          if (!isOwn) plot.setCursor(spotOf(plot, x), false);
        };
        end = cursor.listen(show);
        if (cursor.x !== null) show(cursor.x);
      },
    ],
    setCursor: [
      (plot) => {
        const { left = -1, top = -1 } = plot.cursor;
        const x = left < 0 ? null : xAt(plot, left, top);
        if (x === null) return;
        isOwn = true;
        cursor.move(x);
        isOwn = false;
      },
    ],
    destroy: [() => end?.()],
  };
}
