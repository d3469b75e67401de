// Keeps every line of a stream that has no end.
package main

import "fmt"

const lineSize = 1 << 20

type history struct {
	lines [][]byte
	bytes int
}

func (h *history) remember(line []byte) {
	h.lines = append(h.lines, line)
	h.bytes += len(line)
}

func stream(number int) []byte {
	line := make([]byte, lineSize)
	for i := range line {
		line[i] = byte('a' + (number+i)%26)
	}
	return line
}

func main() {
	var seen history
	fmt.Println("reading")
	for number := 0; ; number++ {
		seen.remember(stream(number))
	}
}
