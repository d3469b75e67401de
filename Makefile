# Everything there is to do here. `make test` is what CI runs.

CARGO ?= cargo
HOSTILE := $(wildcard tests/hostile/*.c)

.PHONY: build

build:
	$(CARGO) build --release

target/hostile/hostile: $(HOSTILE) tests/hostile/hostile.h
	@mkdir -p target/hostile
	$(CC) -O1 -Wall -Wextra -static -pthread -o $@ $(HOSTILE)
