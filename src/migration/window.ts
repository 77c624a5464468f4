/** The hours of the day in which a migration works, by the clock of a zone that is always stated. */

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

  /** `22:00-05:00 Europe/Paris`, which crosses midnight. A `RangeError` says in words what is wrong. */
  static parse(text: string): Window {
    const [, from, to, zone] = PATTERN.exec(text.trim()) ?? [];
    if (from === undefined || to === undefined || zone === undefined)
      throw new RangeError(
        `${text} does not say from when to when and by the clock of which zone, as 22:00-05:00 Europe/Paris does`,
      );
    const window = new Window(timeOf(from), timeOf(to), zoneOf(zone));
    if (window.#from.equals(window.#to)) throw new RangeError(`${text} begins when it ends`);
    return window;
  }

  /** Null while it is open. */
  opensAt(now: Temporal.Instant): Temporal.Instant | null {
    const today = now.toZonedDateTimeISO(this.#zone).toPlainDate();
    const isBefore = (one: Temporal.Instant, other: Temporal.Instant) =>
      Temporal.Instant.compare(one, other) < 0;
    // A window of a day that skips an hour may be empty, so that it takes more than one day to find the next.
    for (let day = -1; ; day += 1) {
      const { from, to } = this.#on(today.add({ days: day }));
      if (!isBefore(from, to) || !isBefore(now, to)) continue;
      return isBefore(now, from) ? from : null;
    }
  }

  /** That begins on the day. A time that the clock skips is the one after the gap, of one that comes twice the first counts. */
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

  /** Seconds of a day in which it is open, daylight saving left aside. */
  get secondsADay(): number {
    const seconds = this.#to.since(this.#from).total("seconds");
    return seconds > 0 ? seconds : seconds + 86_400;
  }
}

function timeOf(text: string): Temporal.PlainTime {
  try {
    return Temporal.PlainTime.from(text.padStart(5, "0"));
  } catch (cause) {
    throw new RangeError(`${text} is no time of the day`, { cause });
  }
}

function zoneOf(text: string): string {
  try {
    return Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(text).timeZoneId;
  } catch (cause) {
    throw new RangeError(`${text} is no time zone, such as Europe/Paris or UTC`, { cause });
  }
}
