/** Stack frames in the author's own modules: frames of the runtime and of Headgate do not help an author. */

/** Modules of mappers are loaded with their digest in the address. */
const OWN = /\?v=[0-9a-f]+/;

/**
 * Frames such as `at Object.map (acme/mapper.ts:3:19)`, innermost first. May throw when a hostile value is inspected.
 */
export function authorFrames(thrown: unknown, countMax: number): readonly string[] {
  return linesOf(thrown)
    .filter((line) => /^\s+at /.test(line) && OWN.test(line))
    .slice(0, countMax)
    .map((line) =>
      line
        .trim()
        .replace(OWN, "")
        .replace(/file:\/\/\S*\/([^/]+\/[^/]+)$/, "$1"),
    );
}

/**
 * Position in a module that cannot be loaded, such as `acme/mapper.ts:3`; undefined when the runtime does not report
 * it.
 */
export function faultyLine(thrown: unknown): string | undefined {
  const lines = linesOf(thrown);
  // For a module with a syntax error, the runtime puts position and text before the error itself.
  const position = [lines[0] ?? "", ...lines.filter((line) => OWN.test(line))];
  return position
    .map((line) => /([^/\s]+\/[^/\s]+\.[cm]?[jt]s)(?:\?v=[0-9a-f]+)?(:\d+)/.exec(line))
    .flatMap((found) => (found === null ? [] : [`${found[1]}${found[2]}`]))[0];
}

function linesOf(thrown: unknown): readonly string[] {
  return thrown instanceof Error && typeof thrown.stack === "string" ? thrown.stack.split("\n") : [];
}
