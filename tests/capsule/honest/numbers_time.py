"""math, decimal, fractions, statistics, random, datetime."""
import math, cmath, random, statistics, time
from decimal import Decimal, getcontext, localcontext
from fractions import Fraction
from datetime import date, datetime, timedelta, timezone
getcontext().prec = 10
print(math.sqrt(2), math.comb(5, 2), math.pi, cmath.sqrt(-1), Decimal(1) / Decimal(3), Fraction(1, 3) + Fraction(1, 6))
with localcontext() as c:
    c.prec = 3
    print(Decimal(2).sqrt())
random.seed(42); print(random.randint(1, 100), random.choice("abc"), random.sample(range(10), 3))
r = random.Random(1); print(round(r.random(), 6))
print(statistics.mean([1, 2, 3, 4]), statistics.median([3, 1, 2]), statistics.stdev([1, 2, 3]))
d = datetime(2024, 2, 28, 12, 30, tzinfo=timezone.utc) + timedelta(days=2)
print(d.isoformat(), d.strftime("%Y/%m/%d"), date(2024, 1, 1).weekday(), datetime.strptime("2020-01-02", "%Y-%m-%d").day, "{:%H:%M}".format(d))
print(time.time() > 0, time.monotonic() > 0, 2 ** 100, 7 // 2, -7 % 3, 0x1F, 1_000, complex(1, 2).conjugate(), (5).bit_length(), int("ff", 16))
