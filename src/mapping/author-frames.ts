/** The lines of an author's own modules in what was thrown: those of the runtime and of Headgate tell an author nothing. */

/** Modules of mappers are loaded with their digest in the address. */
const OWN = /\?v=[0-9a-f]+/;

/** Frames such as `at Object.map (acme/mapper.ts:3:19)`, innermost first. May throw what a hostile value throws when it is looked at. */
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

/** Where a module stands that cannot be loaded, such as `acme/mapper.ts:3`; undefined when the runtime does not tell. */
export function faultyLine(thrown: unknown): string | undefined {
  const lines = linesOf(thrown);
  // Of a module that cannot be read, the runtime puts place and text before the error itself.
  const told = [lines[0] ?? "", ...lines.filter((line) => OWN.test(line))];
  return told
    .map((line) => /([^/\s]+\/[^/\s]+\.[cm]?[jt]s)(?:\?v=[0-9a-f]+)?(:\d+)/.exec(line))
    .flatMap((found) => (found === null ? [] : [`${found[1]}${found[2]}`]))[0];
}

function linesOf(thrown: unknown): readonly string[] {
  return thrown instanceof Error && typeof thrown.stack === "string" ? thrown.stack.split("\n") : [];
}
