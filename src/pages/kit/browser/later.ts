/** Keeps long lists out of the task that draws what a person sees first. */
import { useEffect, useState } from "preact/hooks";

/** The value, once the browser has shown a frame with it; the one before until then. */
export function useLater<Value>(value: Value): Value | null {
  const [later, setLater] = useState<Value | null>(null);
  useEffect(() => {
    let timer = 0;
    const frame = requestAnimationFrame(() => {
      timer = Number(setTimeout(() => setLater(() => value)));
    });
    return () => {
      cancelAnimationFrame(frame);
      clearTimeout(timer);
    };
  }, [value]);
  return later;
}
