// Reads shipments as JSON from standard input and prints them by weight.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sort"
)

type Shipment struct {
	ID     string   `json:"id"`
	Weight float64  `json:"weight_kg"`
	Tags   []string `json:"tags,omitempty"`
	Target *Place   `json:"target"`
}

type Place struct {
	City string `json:"city"`
	Zip  string `json:"zip"`
}

func main() {
	var shipments []Shipment
	decoder := json.NewDecoder(os.Stdin)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&shipments); err != nil {
		fmt.Fprintln(os.Stderr, "bad input:", err)
		os.Exit(1)
	}

	sort.Slice(shipments, func(i, j int) bool { return shipments[i].Weight > shipments[j].Weight })
	total := 0.0
	for _, s := range shipments {
		city := "nowhere"
		if s.Target != nil {
			city = s.Target.City
		}
		fmt.Printf("%-4s %6.2f kg to %s %v\n", s.ID, s.Weight, city, s.Tags)
		total += s.Weight
	}

	heaviest, _ := json.Marshal(shipments[0])
	fmt.Println(string(heaviest))
	fmt.Printf("total %.2f\n", total)
}
