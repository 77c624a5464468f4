/** Readings of some targets over time; one axis for each unit. */
import { useMemo } from "preact/hooks";
import uPlot, { type AlignedData, type Axis } from "uplot";
import { axisOf, Plot, TICKS, tick } from "../../kit/browser/plot.ts";
import { type Element, html } from "../../kit/html.ts";
import type { Readings } from "../contract.ts";
import { TEXTS } from "../texts.ts";
import { useZone } from "../time.ts";
import { visible } from "../words.ts";

/** Colours of the stylesheet, which repeat. */
export const COLOURS = 8;
const AXIS_PIXELS = 60;

interface PlotProps {
  readonly readings: Readings["readings"];
  readonly targets: Readings["targets"];
}

export function ReadingsPlot({ readings, targets }: PlotProps): Element {
  const zone = useZone();
  const data = useMemo(() => dataOf(readings, targets), [readings, targets.map(({ target }) => target).join("\n")]);
  const units = [...new Set(targets.map(({ unit }) => unit ?? ""))];
  const words = TEXTS.readings.plot(targets.map(({ target }) => target).join("; "));
  const draw = (colour: (name: string) => string) => ({
    data,
    options: {
      series: [
        {},
        ...targets.map(({ target, unit }, at) => ({
          label: target,
          scale: unit ?? "",
          stroke: colour(`series-${at % COLOURS}`),
          width: 1.5,
          points: { size: 4 },
        })),
      ],
      legend: { show: false },
      tzDate: (seconds: number) => uPlot.tzDate(new Date(seconds * 1_000), zone),
      axes: [
        { ...axisOf(colour), values: TICKS },
        ...units.map((scale, at): Axis => {
          const axis = axisOf(colour);
          const side = at === 0 ? 3 : 1;
          const label = scale === "" ? {} : { label: visible(scale) };
          const grid = { ...axis.grid, show: at === 0 };
          return { ...axis, scale, side, grid, size: AXIS_PIXELS, ...label, values: (_, all) => all.map(tick) };
        }),
      ],
      cursor: { drag: { x: true, y: false } },
    },
  });
  return html`<${Plot} height=${() => 240} words=${words} inputs=${[data, zone]} draw=${draw} />`;
}

function dataOf(readings: PlotProps["readings"], targets: PlotProps["targets"]): AlignedData {
  const tables = targets.map(({ target }) => {
    const own = readings
      .filter((one) => one.target === target)
      .map(({ date, value }) => [Date.parse(date) / 1_000, value] as const)
      .sort(([one], [other]) => one - other);
    return [own.map(([at]) => at), own.map(([, value]) => value)] as AlignedData;
  });
  return tables.length === 0 ? [[]] : uPlot.join(tables);
}
