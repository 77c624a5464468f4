/** Which versions of the points are shown, and what they are compared with, as the address has them. */
import type { Parameters } from "./hub.ts";

export const SPANS = { h: 3_600_000, d: 86_400_000, w: 604_800_000, m: 2_629_800_000, y: 31_557_600_000 } as const;
export type Span = keyof typeof SPANS;

/** The latest versions where it is `current`. */
export type State =
  | { readonly kind: "current" }
  /** Points that got their latest version in the last so many hours, … */
  | { readonly kind: "last"; readonly count: number; readonly span: Span }
  /** An instant. */
  | { readonly kind: "asof"; readonly at: string }
  | { readonly kind: "tag"; readonly tag: string };

export const PERIODS = ["day", "week", "month", "year"] as const;
export type Earlier = (typeof PERIODS)[number];

export type Comparison =
  | { readonly kind: "none" }
  | { readonly kind: "asof"; readonly at: string }
  | { readonly kind: "earlier"; readonly unit: Earlier };

const INSTANT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?Z$/;
const TAG_MAX = 200;

function instantOf(text: string): string | null {
  return INSTANT.test(text) && !Number.isNaN(Date.parse(text)) ? text : null;
}

export function readState(text: string | null): State {
  const [, kind = "", rest = ""] = /^(asof|last|tag):(.+)$/s.exec(text ?? "") ?? [];
  const [, count = "", span = ""] = /^(\d{1,4})([hdwmy])$/.exec(rest) ?? [];
  const at = instantOf(rest);
  if (kind === "asof" && at !== null) return { kind, at };
  if (kind === "last" && Number(count) > 0) return { kind, count: Number(count), span: span as Span };
  if (kind === "tag") return { kind, tag: rest.slice(0, TAG_MAX) };
  return { kind: "current" };
}

/** Null for the latest versions, which an address need not name. */
export function stateText(state: State): string | null {
  if (state.kind === "asof") return `asof:${state.at}`;
  if (state.kind === "last") return `last:${state.count}${state.span}`;
  return state.kind === "tag" ? `tag:${state.tag}` : null;
}

/** Parameters of /data. */
export function stateParameters(state: State, nowMs: number): Parameters {
  if (state.kind === "asof") return { AsOf: state.at };
  if (state.kind === "tag") return { VersionTag: state.tag };
  if (state.kind === "current") return {};
  return { VersionSince: new Date(nowMs - state.count * SPANS[state.span]).toISOString() };
}

export function readComparison(text: string | null): Comparison {
  const at = text?.startsWith("asof:") ? instantOf(text.slice(5)) : null;
  if (at !== null) return { kind: "asof", at };
  const unit = PERIODS.find((one) => one === text);
  return unit === undefined ? { kind: "none" } : { kind: "earlier", unit };
}

export function comparisonText(comparison: Comparison): string | null {
  if (comparison.kind === "asof") return `asof:${comparison.at}`;
  return comparison.kind === "earlier" ? comparison.unit : null;
}

/** A point of a variable. */
export interface PointName {
  readonly variableId: number;
  /** As the hub writes it. */
  readonly date: string;
}

export function readPoint(text: string | null): PointName | null {
  const [, id = "", date = ""] = /^(\d{1,15})@(\S{1,40})$/.exec(text ?? "") ?? [];
  return id === "" || Number.isNaN(Date.parse(date)) ? null : { variableId: Number(id), date };
}

export function pointText(point: PointName | null): string | null {
  return point === null ? null : `${point.variableId}@${new Date(point.date).toISOString()}`;
}
