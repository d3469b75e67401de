// Hides what is private in a text and extracts what is not.
package main

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	email = regexp.MustCompile(`([\w.]+)@([\w.]+\.\w+)`)
	card  = regexp.MustCompile(`\b(?:\d{4}[- ]){3}(\d{4})\b`)
	order = regexp.MustCompile(`(?i)order\s+#(?P<id>\d+)\s+of\s+(?P<day>\d{4}-\d{2}-\d{2})`)
)

const letter = `Hello, this is Ada (ada.l@example.com).
My order #1042 of 2024-03-12 never came; Order #977 of 2024-01-30 did.
I paid with 1234-5678-9012-3456. Write to support@shop.example.org.`

func scrub(text string) string {
	text = email.ReplaceAllString(text, "***@$2")
	return card.ReplaceAllString(text, "card ending in $1")
}

func main() {
	fmt.Println(scrub(letter))

	id, day := order.SubexpIndex("id"), order.SubexpIndex("day")
	for _, match := range order.FindAllStringSubmatch(letter, -1) {
		fmt.Printf("order %s on %s\n", match[id], match[day])
	}

	shout := regexp.MustCompile(`\b[a-z]{5,}\b`).ReplaceAllStringFunc("one three seven ten", strings.ToUpper)
	fmt.Println(shout)
}
