/** The metrics as text: in the Prometheus format, or in OpenMetrics with exemplars for clients that ask for it. */
import { openMetricsContentType, prometheusContentType, type Registry, type RegistryContentType } from "prom-client";

export interface Exposition {
  readonly type: string;
  readonly text: string;
}

/**
 * Requests are served one after another, since the registry has one format at a time. `accept` is the header of the
 * request.
 */
export function exposer(registry: Registry): (accept: string | undefined) => Promise<Exposition> {
  let latest: Promise<unknown> = Promise.resolve();
  const write = async (accept: string | undefined): Promise<Exposition> => {
    const open = accept?.includes("application/openmetrics-text") === true;
    const any = registry as Registry<RegistryContentType>;
    any.setContentType(open ? openMetricsContentType : prometheusContentType);
    return { type: any.contentType, text: await any.metrics() };
  };
  return (accept) => {
    const mine = latest.then(() => write(accept));
    latest = mine.catch(() => undefined); // Each caller handles its own.
    return mine;
  };
}
