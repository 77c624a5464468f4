/** A plot that keeps the width of its place and the colours of the page. */
import { useEffect, useRef } from "preact/hooks";
import uPlot, { type AlignedData, type Axis, type Options } from "uplot";
import { type Element, html } from "../html.ts";

const WIDTH_LEAST = 200;
const WIDER = 1.25;

/** Texts of ticks, by the distance between ticks; the rest where a day or a year begins. */
export const TICKS = [
  [31_536_000, "{YYYY}", null, null, null, null, null, null, 1],
  [2_419_200, "{MMM}", "\n{YYYY}", null, null, null, null, null, 1],
  [86_400, "{D} {MMM}", "\n{YYYY}", null, null, null, null, null, 1],
  [60, "{HH}:{mm}", "\n{D} {MMM} {YYYY}", null, "\n{D} {MMM}", null, null, null, 1],
  [1, "{HH}:{mm}:{ss}", "\n{D} {MMM} {YYYY}", null, "\n{D} {MMM}", null, null, null, 1],
] as unknown as NonNullable<Axis["values"]>;

export interface Drawing {
  readonly options: Omit<Options, "width" | "height">;
  readonly data: AlignedData;
}

interface PlotProps {
  /** Pixels, by the width of the place. */
  readonly height: (width: number) => number;
  /** Says what is drawn, for people who do not see it. */
  readonly words: string;
  /** A change of any draws again. */
  readonly inputs: readonly unknown[];
  /** `colour`: a variable of the stylesheet; `pixels`: the width of the plot in pixels of the screen. */
  draw(colour: (name: string) => string, pixels: number): Drawing;
}

export function Plot({ height, words, inputs, draw }: PlotProps): Element {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const size = () => {
      const width = Math.max(element.clientWidth, WIDTH_LEAST);
      return { width, height: height(width) };
    };
    let drawnWidth = 0;
    const begin = () => {
      const style = getComputedStyle(element);
      drawnWidth = size().width;
      const pixels = Math.round(drawnWidth * devicePixelRatio);
      const { options, data } = draw((name) => style.getPropertyValue(`--${name}`).trim(), pixels);
      return new uPlot({ ...options, ...size() }, data, element);
    };
    let plot = begin();
    const redraw = () => {
      plot.destroy();
      plot = begin();
    };
    const sizes = new ResizeObserver(() => {
      const { width } = size();
      // A drawing for few pixels lacks values for many.
      if (width > drawnWidth * WIDER) redraw();
      else if (width !== plot.width) plot.setSize(size());
    });
    sizes.observe(element);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", redraw);
    return () => {
      sizes.disconnect();
      dark.removeEventListener("change", redraw);
      plot.destroy();
    };
  }, [...inputs]);
  return html`<div class="plot" ref=${place} role="img" aria-label=${words}></div>`;
}

export function axisOf(colour: (name: string) => string): Axis {
  return { stroke: colour("muted"), grid: { stroke: colour("line"), width: 1 }, ticks: { show: false } };
}

export function tick(value: number | null): string {
  return value === null ? "" : value.toLocaleString(undefined, { maximumSignificantDigits: 6 });
}
