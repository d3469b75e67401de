// A binary search that stops making progress.
package main

import "fmt"

func search(values []int, wanted int) int {
	low, high := 0, len(values)-1
	for low <= high {
		middle := (low + high) / 2
		switch {
		case values[middle] == wanted:
			return middle
		case values[middle] < wanted:
			low = middle // should be middle + 1
		default:
			high = middle - 1
		}
	}
	return -1
}

func main() {
	values := []int{2, 3, 5, 7, 11, 13}
	fmt.Println("5 is at", search(values, 5))
	fmt.Println("14 is at", search(values, 14))
}
