/** Handlers of the endpoints about the configuration. */
import { settingsOf } from "../effective-config.ts";
import type { configurationEndpoints } from "../operations/api/configuration.ts";
import type { HandlersOf } from "../operations/api/endpoint.ts";
import type { QueryParts } from "../operator-queries.ts";
import { Validator } from "./validator.ts";

export function configurationHandlers({
  live,
  configFile,
  configuration,
  closers,
}: Pick<QueryParts, "live" | "configFile" | "configuration" | "closers">): HandlersOf<typeof configurationEndpoints> {
  const validator = new Validator();
  closers.push(() => validator.close());
  return {
    configuration: () => ({
      file: configFile ?? null,
      settings: settingsOf(live.file()),
      reloads: configuration?.reloads() ?? [],
    }),
    validate: ({ body, person, signal }) => validator.validate(body.text, person.name, signal),
  };
}
