package main

import (
	"errors"
	"fmt"

	"example.com/warehouse/inventory"
)

func main() {
	store := inventory.New()
	store.Add("bolt", 40)
	store.Add("gear", 3)

	if err := store.Take("bolt", 15); err != nil {
		fmt.Println(err)
	}
	err := store.Take("gear", 5)
	var short *inventory.ShortageError
	if errors.As(err, &short) {
		fmt.Printf("%v (missing %d)\n", err, short.Missing)
	}
	fmt.Print(render(store))
}
