/** Facts and values of the chosen variables, asked for again when the address changes. */
import { useEffect, useState } from "preact/hooks";
import type { Aggregated } from "#wire/referentials/aggregates.ts";
import { addToLocal, ianaOf, localOfMs, msOfLocal, nowMs, zoneOfBrowser } from "../kit/zone.ts";
import type { Granularity, Shown, View } from "./address.ts";
import { besideShown, otherQuestion } from "./comparison.ts";
import {
  ask,
  askRows,
  type DataRow,
  type Parameters,
  type Site,
  type Source,
  type Unit,
  units,
  type Variable,
} from "./hub.ts";
import { aggregatesOf, granularityFor, type Series, SeriesOfRows } from "./series.ts";
import { stateParameters } from "./state.ts";
import { TEXTS } from "./texts.ts";

/** Before the newest value, when the address names no period. */
const DAYS_DEFAULT = 7;

export interface Chosen {
  readonly variables: readonly Variable[];
  readonly sources: ReadonlyMap<number, Source>;
  readonly units: ReadonlyMap<number, Unit>;
  /** Zone of the first variable's site, IANA. */
  readonly siteZone: string;
}

export interface Summary extends DataRow {
  readonly latest: DataRow | undefined;
}

export interface Loaded extends Chosen {
  readonly series: readonly Series[];
  /** The series that they are compared with, in their order and at their times; empty without a comparison. */
  readonly others: readonly Series[];
  readonly summaries: ReadonlyMap<number, Summary>;
  readonly from: string;
  readonly to: string;
  readonly fromMs: number;
  readonly toMs: number;
  /** IANA. */
  readonly zone: string;
  readonly granularity: Granularity;
  readonly view: View;
  /** Parameters of the rows, for exports. */
  readonly question: Parameters;
  readonly atMs: number;
}

async function loadChosen(ids: readonly number[], signal: AbortSignal): Promise<Chosen> {
  const [found, known] = await Promise.all([ask<readonly Variable[]>("/variables", { Ids: ids }, signal), units()]);
  const byId = new Map(found.map((one) => [one.id, one]));
  const variables = ids.flatMap((id) => byId.get(id) ?? []);
  if (variables.length < ids.length) throw new Error(TEXTS.missing);
  const sourceIds = [...new Set(variables.map(({ sourceId }) => sourceId))];
  const sources = await ask<readonly Source[]>("/sources", { Ids: sourceIds, DisplayLevel: "Site" }, signal);
  const first = sources.find(({ id }) => id === variables[0]?.sourceId);
  const site: Site | null | undefined = first?.site;
  return {
    variables,
    sources: new Map(sources.map((one) => [one.id, one])),
    units: known,
    siteZone: ianaOf(site?.timeZoneId ?? zoneOfBrowser()),
  };
}

async function load(shown: Shown, signal: AbortSignal): Promise<Loaded> {
  const chosen = await loadChosen(shown.variables, signal);
  const { variables } = chosen;
  const zone = shown.zone === null ? chosen.siteZone : ianaOf(shown.zone);
  const atMs = nowMs();
  const selection = {
    VariableIds: variables.map(({ id }) => id),
    TimeZoneId: zone,
    DisplayLevel: "ValueVariableDate",
    ...(shown.units.length === 0 ? {} : { TargetUnits: shown.units }),
  };
  const one = { PagingOrder: "DESC", "Paging.PageNumber": 0, "Paging.ItemsPerPage": 1 };
  const latest = await ask<readonly DataRow[]>("/data", { ...selection, ...one }, signal);
  const { from, to } = periodOf(shown, latest, zone, atMs);
  const [fromMs, toMs] = [msOfLocal(from, zone), msOfLocal(to, zone)];
  const { view } = shown;
  // The cells of a heat map are hours.
  const granularity = view === "heat" ? "Hour" : (shown.granularity ?? granularityFor(variables, toMs - fromMs));
  const period = { ...selection, ...stateParameters(shown.state, atMs), From: from, To: to };
  const question = { ...period, ...shapeOf(granularity, variables, shown.aggregate) };
  const whole = { ...period, Granularity: "All", Aggregations: ["SUM", "AVG", "MIN", "MAX", "COUNT"] };
  const other = otherQuestion(question, shown.comparison, { from, to, zone });
  const shape = { granularity, aggregate: shown.aggregate };
  const seriesOf = async (asked: Parameters): Promise<readonly Series[]> => {
    const rows = new SeriesOfRows(variables, shape);
    await askRows("/data", asked, (some) => rows.add(some), signal);
    return rows.taken();
  };
  const [wholes, series, others] = await Promise.all([
    ask<readonly DataRow[]>("/data", whole, signal),
    seriesOf(question),
    other === null ? [] : seriesOf(other),
  ]);
  const summaries = variables.map(({ id }): [number, Summary] => {
    const own = wholes.find(({ variableId }) => variableId === id) ?? {};
    return [id, { ...own, latest: latest.find(({ variableId }) => variableId === id) }];
  });
  return {
    ...chosen,
    ...{ from, to, fromMs, toMs, zone, granularity, view, question, atMs },
    series,
    others: besideShown(others, series, shown.comparison, { from, to, zone }),
    summaries: new Map(summaries),
  };
}

function shapeOf(granularity: Granularity, variables: readonly Variable[], aggregate: Aggregated | null): Parameters {
  return granularity === "Raw" ? {} : { Granularity: granularity, Aggregations: aggregatesOf(variables, aggregate) };
}

/** Of the address; or some days until the end of the one with the newest value. */
function periodOf(shown: Shown, latest: readonly DataRow[], zone: string, nowMs: number) {
  if (shown.from !== null && shown.to !== null) return { from: shown.from, to: shown.to };
  const newest = Math.max(...latest.map(({ date }) => Date.parse(date ?? "")).filter((ms) => !Number.isNaN(ms)));
  const day = localOfMs(Number.isFinite(newest) ? newest : nowMs, zone).slice(0, 10);
  return { from: addToLocal(day, 1 - DAYS_DEFAULT, "day"), to: addToLocal(day, 1, "day") };
}

export interface Loading {
  /** The one before while the next is loaded. */
  readonly loaded: Loaded | null;
  readonly isLoading: boolean;
}

export function useLoaded(shown: Shown, onFault: (thrown: unknown) => void): Loading {
  const [state, setState] = useState<Loading>({ loaded: null, isLoading: false });
  useEffect(() => {
    if (shown.variables.length === 0) {
      setState({ loaded: null, isLoading: false });
      return;
    }
    const stop = new AbortController();
    setState(({ loaded }) => ({ loaded, isLoading: true }));
    load(shown, stop.signal).then(
      (loaded) => {
        if (!stop.signal.aborted) setState({ loaded, isLoading: false });
      },
      (thrown: unknown) => {
        if (stop.signal.aborted) return;
        setState({ loaded: null, isLoading: false });
        onFault(thrown);
      },
    );
    return () => stop.abort();
  }, [shown]);
  return state;
}
