// A recursive parser for a grammar that refers to itself on the left.
package main

import (
	"fmt"
	"runtime/debug"
)

type parser struct {
	input string
	pos   int
}

func (p *parser) term() int {
	value := 0
	for p.pos < len(p.input) && p.input[p.pos] >= '0' && p.input[p.pos] <= '9' {
		value = value*10 + int(p.input[p.pos]-'0')
		p.pos++
	}
	return value
}

// expression = expression "+" term, which never consumes anything.
func (p *parser) expression() int {
	left := p.expression()
	p.pos++
	return left + p.term()
}

func main() {
	debug.SetMaxStack(64 << 20)
	fmt.Println("term:", (&parser{input: "42"}).term())
	fmt.Println("sum:", (&parser{input: "1+2"}).expression())
}
