/** Maps when something was changed, and nothing is typed any longer. */
import { useEffect, useState } from "preact/hooks";
import { Problem, post } from "../api.ts";
import type { Mapped } from "../contract.ts";
import type { SourceOf, Tried } from "./page.ts";

const TYPED_MS = 400;
/** A newer request of the same person took its place. */
const REPLACED = "HG-OPS-010";

export interface Mapping {
  /** The one before while the next is made. */
  readonly answer: Mapped | null;
  readonly fault: unknown;
  readonly isBusy: boolean;
}

export function useMapped(source: SourceOf | null, tried: Tried): Mapping {
  const [state, setState] = useState<Mapping>({ answer: null, fault: null, isBusy: false });
  const key = source === null || tried.mapper === "" ? null : JSON.stringify([source, tried]);
  useEffect(() => {
    if (key === null) {
      setState({ answer: null, fault: null, isBusy: false });
      return;
    }
    const stop = new AbortController();
    const { mapper, settings, rows, fileName } = tried;
    const body = { ...source, mapper, settings, rows, ...(fileName === "" ? {} : { fileName }) };
    const timer = setTimeout(() => {
      setState((before) => ({ ...before, isBusy: true }));
      post<Mapped>("/playground/map", body, { signal: stop.signal }).then(
        (answer) => setState({ answer, fault: null, isBusy: false }),
        (fault: unknown) => {
          if (stop.signal.aborted || (fault instanceof Problem && fault.code === REPLACED)) return;
          setState({ answer: null, fault, isBusy: false });
        },
      );
    }, TYPED_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [key]);
  return state;
}
