package main

import (
	"fmt"
	"strings"

	"example.com/warehouse/inventory"
)

func render(store *inventory.Store) string {
	var out strings.Builder
	for _, name := range store.Names() {
		fmt.Fprintf(&out, "%-6s %s\n", name, strings.Repeat("#", store.Count(name)))
	}
	return out.String()
}
