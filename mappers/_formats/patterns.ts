/** One pattern of parts that follow each other, with the flags of the first. */
export function joined(first: RegExp, ...parts: readonly RegExp[]): RegExp {
  return new RegExp([first, ...parts].map(({ source }) => source).join(""), first.flags);
}
