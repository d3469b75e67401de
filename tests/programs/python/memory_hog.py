"""A cache that never forgets."""


class Cache:
    def __init__(self):
        self._pages = {}

    def page(self, number):
        if number not in self._pages:
            self._pages[number] = bytearray(str(number).encode() * 1024 * 256)
        return self._pages[number]


def main():
    cache = Cache()
    print("filling the cache", flush=True)
    number = 1000
    while True:
        cache.page(number)
        number += 1


if __name__ == "__main__":
    main()
