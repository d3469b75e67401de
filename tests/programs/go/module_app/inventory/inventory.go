// Package inventory counts things.
package inventory

import (
	"fmt"
	"sort"
)

// ShortageError says how many items were missing.
type ShortageError struct {
	Name    string
	Missing int
}

func (e *ShortageError) Error() string { return "not enough of " + e.Name }

// Store holds items by name.
type Store struct{ counts map[string]int }

// New returns an empty store.
func New() *Store { return &Store{counts: make(map[string]int)} }

// Add puts n items into the store.
func (s *Store) Add(name string, n int) { s.counts[name] += n }

// Count returns how many items of a name there are.
func (s *Store) Count(name string) int { return s.counts[name] }

// Take removes n items, or none.
func (s *Store) Take(name string, n int) error {
	if have := s.counts[name]; have < n {
		return fmt.Errorf("take %d: %w", n, &ShortageError{name, n - have})
	}
	s.counts[name] -= n
	return nil
}

// Names returns all names in order.
func (s *Store) Names() []string {
	names := make([]string, 0, len(s.counts))
	for name := range s.counts {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
