/** Metrics of the configuration's file. */
import { Gauge, type Registry } from "prom-client";

export class ConfigurationMetrics {
  #valid = 1;
  #appliedSeconds = 0;

  /** A changed configuration is in force. */
  taken(at: Temporal.Instant): void {
    this.#valid = 1;
    this.#appliedSeconds = at.epochMilliseconds / 1000;
  }

  valid(): void {
    this.#valid = 1;
  }

  refused(): void {
    this.#valid = 0;
  }

  register(registry: Registry): void {
    const value = (read: () => number) => ({
      registers: [registry],
      collect(this: Gauge) {
        this.set(read());
      },
    });
    new Gauge({
      name: "headgate_configuration_valid",
      help: "0 while the configuration's file is refused and the former one stays in force",
      ...value(() => this.#valid),
    });
    new Gauge({
      name: "headgate_configuration_loaded_timestamp_seconds",
      help: "When the configuration in force was taken",
      ...value(() => this.#appliedSeconds),
    });
  }
}
