/** The data of a page: loaded when it opens, and again when it changes. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { get, type Parameters } from "./api.ts";

export interface Query<Answer> {
  /** The one before while the next is loaded; null before the first. */
  readonly answer: Answer | null;
  readonly fault: unknown;
  readonly isLoading: boolean;
  reload(): void;
}

/** Null as path: nothing is asked. The answer of another path is never shown for this one. */
export function useQuery<Answer>(path: string | null, parameters: Parameters = {}): Query<Answer> {
  const [state, setState] = useState<{
    path: string | null;
    answer: Answer | null;
    fault: unknown;
    isLoading: boolean;
  }>({ path: null, answer: null, fault: null, isLoading: path !== null });
  const [count, setCount] = useState(0);
  const key = JSON.stringify(parameters);
  useEffect(() => {
    if (path === null) return;
    const stop = new AbortController();
    setState((before) => ({ ...before, isLoading: true }));
    get<Answer>(path, parameters, stop.signal).then(
      (answer) => setState({ path, answer, fault: null, isLoading: false }),
      (fault: unknown) => {
        if (stop.signal.aborted) return;
        setState((before) => ({ ...before, fault, isLoading: false }));
      },
    );
    return () => stop.abort();
  }, [path, key, count]);
  const reload = useCallback(() => setCount((before) => before + 1), []);
  return { ...state, answer: state.path === path ? state.answer : null, reload };
}

export interface List<Item> extends Query<readonly Item[]> {
  readonly hasMore: boolean;
  /** The answer of the last part; null before the first. */
  readonly last: object | null;
  more(): void;
}

type Part<Item> = { readonly next: string | null } & Readonly<Record<string, readonly Item[] | string | null>>;

/** A list that comes in parts; `field` names it in the answer. */
export function useList<Item>(path: string | null, field: string, parameters: Parameters = {}): List<Item> {
  const first = useQuery<Part<Item>>(path, parameters);
  const [rest, setRest] = useState<{ items: readonly Item[]; last: Part<Item> } | null>(null);
  const [fault, setFault] = useState<unknown>(null);
  const of = useRef<unknown>(null);
  of.current = first.answer;
  useEffect(() => setRest(null), [first.answer]);
  const listed = (part: Part<Item>) => (part[field] ?? []) as readonly Item[];
  const next = first.answer === null ? null : (rest?.last ?? first.answer).next;
  const more = () => {
    if (path === null || next === null) return;
    const asked = first.answer;
    get<Part<Item>>(path, { ...parameters, after: next }).then((part) => {
      // Another search may have been begun meanwhile.
      if (of.current === asked)
        setRest((before) => ({ items: [...(before?.items ?? []), ...listed(part)], last: part }));
    }, setFault);
  };
  const answer = first.answer === null ? null : [...listed(first.answer), ...(rest?.items ?? [])];
  return {
    ...first,
    answer,
    fault: first.fault ?? fault,
    hasMore: next !== null,
    last: rest?.last ?? first.answer,
    more,
  };
}
