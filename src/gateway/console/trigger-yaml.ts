/** The text of a trigger for the configuration, as the playground proposes it. */
import { extname, posix } from "node:path";
import { stringify } from "yaml";
import type { MapRequest } from "../operations/api/playground.ts";

/** The trigger for files that end like this one; a person narrows its pattern. */
export function triggerYaml({ mapper, settings, rows, rejectShare }: MapRequest, fileName: string): string {
  const ending = extname(fileName);
  return stringify([
    {
      name: mapper,
      mapper,
      ...(rows === "lenient" ? { rows, rejectShare } : {}),
      fileNamePatternMatches: [
        ending === ""
          ? { filterType: "Equals", value: posix.basename(fileName) }
          : { filterType: "EndsWith", value: ending },
      ],
      ...(Object.keys(settings).length === 0 ? {} : { metadata: settings }),
    },
  ]);
}
