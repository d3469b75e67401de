// Validates a sudoku row given as an argument and exits with 3 when it is wrong.
package main

import (
	"errors"
	"fmt"
	"os"
)

var errLength = errors.New("a row has nine digits")

type duplicateError struct {
	digit rune
	at    int
}

func (e duplicateError) Error() string {
	return fmt.Sprintf("digit %c again at position %d", e.digit, e.at)
}

func check(row string) error {
	if len(row) != 9 {
		return errLength
	}
	seen := make(map[rune]bool)
	for i, digit := range row {
		if seen[digit] {
			return duplicateError{digit, i + 1}
		}
		seen[digit] = true
	}
	return nil
}

func main() {
	for _, row := range os.Args[1:] {
		if err := check(row); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", row, err)
			os.Exit(3)
		}
		fmt.Println(row, "is fine")
	}
}
