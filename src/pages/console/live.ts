/** Changes, as the gateway reports them. One connection serves all parts of the page. */
import { useEffect, useRef } from "preact/hooks";
import { addressOf, get } from "./api.ts";
import type { LiveEvents } from "./contract.ts";

export type LiveEvent = keyof LiveEvents;
/** Beside the events of the gateway: whether they arrive, and why they do not. */
interface Notices extends LiveEvents {
  readonly connected: boolean;
  readonly fault: unknown;
}
type Listener = (data: unknown) => void;

const NAMES: readonly LiveEvent[] = ["state", "files", "drops", "attention"];
/** After the gateway refused the connection. */
const RETRY_MS = 5_000;

const listeners = new Map<string, Set<Listener>>();
let source: EventSource | null = null;
let wasLost = false;

function notify(name: string, data: unknown): void {
  for (const listener of listeners.get(name) ?? []) listener(data);
}

function connect(): void {
  source = new EventSource(addressOf("/live"));
  source.addEventListener("open", () => {
    notify("connected", true);
    // Changes of that time were not reported.
    if (wasLost) for (const name of NAMES) notify(name, null);
    wasLost = false;
  });
  source.addEventListener("error", () => {
    wasLost = true;
    notify("connected", false);
    if (source?.readyState !== EventSource.CLOSED) return;
    source.close();
    // A session that is over is seen by the next request.
    get("/me").then(
      () => setTimeout(connect, RETRY_MS),
      (fault: unknown) => {
        notify("fault", fault);
        setTimeout(connect, RETRY_MS);
      },
    );
  });
  for (const name of NAMES)
    source.addEventListener(name, (event) => notify(name, JSON.parse((event as MessageEvent<string>).data)));
}

/** The data is null after an interruption: ask again. */
export function useLive<Name extends keyof Notices>(name: Name, listener: (data: Notices[Name] | null) => void): void {
  const latest = useRef(listener);
  latest.current = listener;
  useEffect(() => {
    const listen: Listener = (data) => latest.current(data as Notices[Name] | null);
    const of = listeners.get(name) ?? new Set();
    listeners.set(name, of.add(listen));
    if (source === null) connect();
    return () => {
      of.delete(listen);
    };
  }, [name]);
}

/** Calls at most once in that time, however many changes are reported. */
export function useLiveReload(names: readonly LiveEvent[], reload: () => void, everyMs = 1_500): void {
  const waiting = useRef<ReturnType<typeof setTimeout> | null>(null);
  const latest = useRef(reload);
  latest.current = reload;
  useEffect(() => {
    const listen = () => {
      waiting.current ??= setTimeout(() => {
        waiting.current = null;
        latest.current();
      }, everyMs);
    };
    for (const name of names) listeners.set(name, (listeners.get(name) ?? new Set()).add(listen));
    if (source === null) connect();
    return () => {
      for (const name of names) listeners.get(name)?.delete(listen);
      if (waiting.current !== null) clearTimeout(waiting.current);
      waiting.current = null;
    };
  }, [names.join()]);
}
