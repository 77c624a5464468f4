/** The hours of the day in which a migration works, by the clock of a stated time zone. */

const PATTERN = /^(\d{1,2}:\d{2})\s*-\s*(\d{1,2}:\d{2})\s+(\S+)$/;

export class Window {
  readonly #from: Temporal.PlainTime;
  readonly #to: Temporal.PlainTime;
  readonly #zone: string;

  private constructor(from: Temporal.PlainTime, to: Temporal.PlainTime, zone: string) {
    this.#from = from;
    this.#to = to;
    this.#zone = zone;
  }

  /** `22:00-05:00 Europe/Paris`, which crosses midnight. Throws a `RangeError` that explains the fault. */
  static parse(text: string): Window {
    const [, from, to, zone] = PATTERN.exec(text.trim()) ?? [];
    if (from === undefined || to === undefined || zone === undefined)
      throw new RangeError(`${text} lacks a beginning, an end or a time zone: write it as 22:00-05:00 Europe/Paris`);
    const window = new Window(timeOf(from), timeOf(to), zoneOf(zone));
    if (window.#from.equals(window.#to)) throw new RangeError(`${text} begins when it ends`);
    return window;
  }

  /** Null while it is open. */
  opensAt(now: Temporal.Instant): Temporal.Instant | null {
    const today = now.toZonedDateTimeISO(this.#zone).toPlainDate();
    const isBefore = (one: Temporal.Instant, other: Temporal.Instant) => Temporal.Instant.compare(one, other) < 0;
    // On a day that skips an hour the window may be empty, so that the search may take more than one day.
    for (let day = -1; ; day += 1) {
      const { from, to } = this.#on(today.add({ days: day }));
      if (!isBefore(from, to) || !isBefore(now, to)) continue;
      return isBefore(now, from) ? from : null;
    }
  }

  /**
   * The window that begins on the day. A skipped time becomes the one after the gap; of a repeated time the first
   * counts.
   */
  #on(day: Temporal.PlainDate): { readonly from: Temporal.Instant; readonly to: Temporal.Instant } {
    const over = Temporal.PlainTime.compare(this.#to, this.#from) < 0 ? 1 : 0;
    const at = (date: Temporal.PlainDate, plainTime: Temporal.PlainTime) =>
      date.toZonedDateTime({ timeZone: this.#zone, plainTime }).toInstant();
    return { from: at(day, this.#from), to: at(day.add({ days: over }), this.#to) };
  }

  /** `2026-03-01 22:00 Europe/Paris` */
  words(at: Temporal.Instant): string {
    const local = at.toZonedDateTimeISO(this.#zone).toPlainDateTime();
    return `${local.toString({ smallestUnit: "minute" }).replace("T", " ")} ${this.#zone}`;
  }
}

function timeOf(text: string): Temporal.PlainTime {
  try {
    return Temporal.PlainTime.from(text.padStart(5, "0"));
  } catch (cause) {
    throw new RangeError(`${text} is not a time of the day`, { cause });
  }
}

function zoneOf(text: string): string {
  try {
    return Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(text).timeZoneId;
  } catch (cause) {
    throw new RangeError(`${text} is not a time zone such as Europe/Paris or UTC`, { cause });
  }
}
