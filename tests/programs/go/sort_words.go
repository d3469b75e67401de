// Sorts words by length and counts their letters.
package main

import (
	"fmt"
	"sort"
	"strings"
)

type byLength []string

func (w byLength) Len() int      { return len(w) }
func (w byLength) Swap(i, j int) { w[i], w[j] = w[j], w[i] }
func (w byLength) Less(i, j int) bool {
	if len(w[i]) != len(w[j]) {
		return len(w[i]) < len(w[j])
	}
	return w[i] < w[j]
}

type count[K comparable] struct {
	key K
	n   int
}

func counts[K comparable](items []K, less func(a, b K) bool) []count[K] {
	seen := make(map[K]int)
	for _, item := range items {
		seen[item]++
	}
	var all []count[K]
	for key, n := range seen {
		all = append(all, count[K]{key, n})
	}
	sort.Slice(all, func(i, j int) bool {
		if all[i].n != all[j].n {
			return all[i].n > all[j].n
		}
		return less(all[i].key, all[j].key)
	})
	return all
}

func main() {
	words := strings.Fields("the quick brown fox jumps over the lazy dog")
	sort.Sort(byLength(words))
	fmt.Println(words)

	letters := []rune(strings.Join(words, ""))
	for _, c := range counts(letters, func(a, b rune) bool { return a < b })[:4] {
		fmt.Printf("%c %d\n", c.key, c.n)
	}
}
