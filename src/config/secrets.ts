/** The secrets of a configuration, so that nothing may write them. */

/** Options that hold one, in whatever section. */
const KEYS = ["password", "passphrase", "privateKey", "clientSecret", "secret", "key"];
/** Values that are too short would take words out of what is written. */
const LENGTH_MIN = 6;

/** Values of options that are secret, and of headers, wherever they stand. */
export function secretsOf(config: unknown): readonly string[] {
  const found = new Set<string>();
  const visit = (value: unknown, isSecret: boolean): void => {
    if (typeof value === "string") {
      if (isSecret && value.length >= LENGTH_MIN) found.add(value);
      return;
    }
    if (typeof value !== "object" || value === null) return;
    for (const [key, inner] of Object.entries(value))
      visit(inner, isSecret || KEYS.includes(key) || key === "headers");
  };
  visit(config, false);
  return [...found];
}
