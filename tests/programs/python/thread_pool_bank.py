"""Concurrent transfers between accounts; the total must never change."""

import threading
from concurrent.futures import ThreadPoolExecutor, as_completed


class Bank:
    def __init__(self, balances):
        self._balances = dict(balances)
        self._lock = threading.Lock()

    def transfer(self, source, target, amount):
        with self._lock:
            if self._balances[source] < amount:
                return False
            self._balances[source] -= amount
            self._balances[target] += amount
            return True

    def total(self):
        with self._lock:
            return sum(self._balances.values())


def main():
    bank = Bank({"alice": 500, "bob": 500, "carol": 500})
    names = ["alice", "bob", "carol"]
    with ThreadPoolExecutor(max_workers=8) as pool:
        jobs = [
            pool.submit(bank.transfer, names[i % 3], names[(i + 1) % 3], i % 50)
            for i in range(600)
        ]
        done = sum(1 for job in as_completed(jobs) if job.result() is not None)
    print("transfers tried:", done)
    print("total:", bank.total())


if __name__ == "__main__":
    main()
