/**
 * Instants of local times in the zone of the source of their reading, which `emit` knows. A mapper passes them on;
 * reading the value of one throws a `FileError`.
 */

import { refusingPrototype } from "./pending-instant.ts";
import { FileError } from "./readers/row-error.ts";

export class LocalDate {
  readonly #read: (zone: string) => Temporal.Instant;
  #zone = "";
  #instant: Temporal.Instant | undefined;
  /** Further ones, of a date that is that of several readings. */
  #others: Map<string, Temporal.Instant> | undefined;

  constructor(read: (zone: string) => Temporal.Instant) {
    this.#read = read;
  }

  /** The instant in this zone, where the order of the rows counts it once. Throws as its reader does. */
  in(zone: string): Temporal.Instant {
    if (zone === this.#zone && this.#instant !== undefined) return this.#instant;
    const instant = this.#others?.get(zone) ?? this.#read(zone);
    if (this.#instant === undefined) {
      this.#zone = zone;
      this.#instant = instant;
    } else {
      this.#others ??= new Map();
      this.#others.set(zone, instant);
    }
    return instant;
  }
}

Object.setPrototypeOf(
  LocalDate.prototype,
  refusingPrototype(() => {
    throw new FileError("the mapper needs the instant of a date before the source is known whose zone it is in", {
      hint: "Name the zone of the file in the trigger's metadata, for example: `timeZone: Europe/Brussels`",
    });
  }),
);

/** The instant that represents it for a mapper. */
export function localInstant(date: LocalDate): Temporal.Instant {
  return date as unknown as Temporal.Instant;
}

export function localDateOf(instant: unknown): LocalDate | undefined {
  return instant instanceof LocalDate ? instant : undefined;
}
