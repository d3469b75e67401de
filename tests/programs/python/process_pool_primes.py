"""Count primes in ranges with a pool of processes."""

from multiprocessing import Pool


def is_prime(n):
    if n < 2:
        return False
    if n % 2 == 0:
        return n == 2
    return all(n % d for d in range(3, int(n**0.5) + 1, 2))


def count_primes(bounds):
    low, high = bounds
    return sum(is_prime(n) for n in range(low, high))


def main():
    chunks = [(start, start + 5_000) for start in range(0, 20_000, 5_000)]
    with Pool(processes=2) as pool:
        counts = pool.map(count_primes, chunks)
    for (low, high), count in zip(chunks, counts):
        print(f"{low:>6} to {high:>6}: {count}")
    print("total:", sum(counts))


if __name__ == "__main__":
    main()
