/** Time zone ids: the data endpoint recognises Windows and IANA names (specification, *Referentials*). */
import windowsZones from "./referentials/windows-zones.json" with { type: "json" };

const ianaOfWindows = new Map(Object.entries(windowsZones).map(([windows, iana]) => [windows.toLowerCase(), iana]));
const known = new Map<string, string | undefined>();
const KNOWN_MAX = 2_000;

/** The IANA name of a time zone id (Windows or IANA, in any case); undefined when it names no zone. */
export function ianaZone(id: string): string | undefined {
  if (known.has(id)) return known.get(id);
  const zone = ianaOfWindows.get(id.toLowerCase()) ?? checkedIana(id);
  if (known.size >= KNOWN_MAX) known.clear();
  known.set(id, zone);
  return zone;
}

function checkedIana(id: string): string | undefined {
  // Temporal also takes plain offsets and whole date-times as zones; a zone id is a name.
  if (!/^[A-Za-z][A-Za-z0-9_+\-/]*$/.test(id)) return undefined;
  try {
    return new Temporal.ZonedDateTime(0n, id).timeZoneId;
  } catch (thrown) {
    if (thrown instanceof RangeError) return undefined;
    throw thrown;
  }
}
