"""What the chains of test/e2e/calculation-chains.ts come to, calculated apart from the hub: standard library only.

Reads the scene from the first file, and writes the points of every calculated variable to the second one.
"""
import json
import math
import sys
from bisect import bisect_right
from datetime import datetime, timezone
from zoneinfo import ZoneInfo

UTC = timezone.utc
HOUR = 3_600_000


def local(ms, zone):
    return datetime.fromtimestamp(ms / 1000, UTC).astimezone(zone)


def to_ms(moment):
    return round(moment.timestamp() * 1000)


def day_of(ms, zone):
    midnight = datetime(*local(ms, zone).timetuple()[:3], tzinfo=zone)
    return to_ms(midnight.astimezone(UTC))


def month_of(ms, zone):
    at = local(ms, zone)
    return to_ms(datetime(at.year, at.month, 1, tzinfo=zone).astimezone(UTC))


def hour_of(ms, zone):
    # The zone of the scene has offsets of whole hours.
    return ms - ms % HOUR


def both(one, other, calculate):
    """At the dates that both have; None is no value."""
    found = {}
    for ms, left in one.items():
        if ms in other:
            value = calculate(left, other[ms])
            if value is not None and math.isfinite(value):
                found[ms] = value
    return found


def previous(points):
    found, last = {}, None
    for ms in sorted(points):
        if last is not None:
            found[ms] = points[last]
        last = ms
    return found


def pairs(points, calculate):
    found, last = {}, None
    for ms in sorted(points):
        if last is not None:
            found[ms] = calculate(points[ms] - points[last], points[ms], ms - last)
        last = ms
    return found


def held(points, dates):
    order = sorted(points)
    found = {}
    for ms in dates:
        at = bisect_right(order, ms)
        if at > 0:
            found[ms] = points[order[at - 1]]
    return found


def aggregate(points, period_of, zone, calculate):
    groups = {}
    for ms in sorted(points):
        groups.setdefault(period_of(ms, zone), []).append(points[ms])
    return {ms: calculate(values) for ms, values in groups.items()}


def cumulative(points, period_of, zone):
    found, sums = {}, {}
    for ms in sorted(points):
        period = period_of(ms, zone)
        sums[period] = sums.get(period, 0.0) + points[ms]
        found[ms] = sums[period]
    return found


def total(values):
    result = 0.0
    for value in values:
        result += value
    return result


def rounded(value, digits):
    scaled = abs(value) * 10**digits
    whole = math.floor(scaled + 0.5)
    return math.copysign(whole / 10**digits, value)


def divided(one, other):
    return None if other == 0 else one / other


def counter(i):
    return pairs(i, lambda fall, _, __: fall if fall >= 0 else fall + 100_000)


def chain_0(i, zone):
    c1 = counter(i[0])
    c2 = both(c1, i[1], lambda c, x: c * 0.25 + x)
    c3 = both(c2, i[2], lambda c, x: c if c > x else None)
    before = previous(c3)
    c4 = {ms: value + i[3].get(ms, 0) for ms, value in before.items()}
    days = aggregate(c4, day_of, zone, total)
    c5 = both(days, held(i[4], days), lambda c, x: c - x)
    return [c1, c2, c3, c4, c5]


def chain_1(i, zone):
    c1 = {ms: value / 1000 for ms, value in i[0].items()}
    c2 = both(c1, i[1], lambda c, x: c - x)
    c3 = both(pairs(c2, lambda step, _, __: step), i[2], divided)
    c4 = both(c3, i[3], lambda c, x: max(c, x) * max(c, x))
    c5 = both(cumulative(c4, month_of, zone), i[4], lambda c, x: c + x)
    return [c1, c2, c3, c4, c5]


def chain_2(i, zone):
    c1 = {ms: value + 1 + 2 for ms, value in i[0].items()}
    c2 = both(held(i[1], c1), c1, lambda x, c: x * c)
    c3 = both(aggregate(c2, hour_of, zone, lambda values: total(values) / len(values)), i[2], lambda c, x: c + x)
    c4 = both(pairs(c3, lambda step, _, took: step / (took / HOUR)), i[3], lambda c, x: c + x)
    dates = sorted(set(c4) & set(i[4]))
    highest = held(aggregate(c4, day_of, zone, max), dates)
    c5 = {ms: highest[ms] - min(c4[ms], i[4][ms]) for ms in dates}
    return [c1, c2, c3, c4, c5]


def chain_3(i, zone):
    c1 = {ms: (value + 10) / 2 for ms, value in i[0].items()}
    c2 = both(c1, i[1], lambda c, x: divided(c, c + x))
    c3 = both(c2, i[2], lambda c, x: rounded(c * 1000, 2) - x)
    c4 = both(c3, i[3], lambda c, x: math.sqrt(abs(c)) if abs(c - x) > 1 else c * 1.5)
    dates = set(c4) | set(i[4])
    c5 = {ms: c4.get(ms, -1) * (1 + (1 if ms in i[4] else 0)) for ms in dates}
    return [c1, c2, c3, c4, c5]


CHAINS = [chain_0, chain_1, chain_2, chain_3]


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        scene = json.load(file)
    zone = ZoneInfo(scene["zone"])
    result = []
    for nth, inputs in enumerate(scene["chains"]):
        columns = [dict(zip(one["at"], map(float, one["values"]))) for one in inputs]
        levels = CHAINS[nth % len(CHAINS)](columns, zone)
        result.append([sorted(points.items()) for points in levels])
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump(result, file)


main()
