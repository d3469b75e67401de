// Sieves primes with a chain of goroutines, one for each prime found.
package main

import "fmt"

func generate(out chan<- int) {
	for n := 2; ; n++ {
		out <- n
	}
}

func filter(in <-chan int, out chan<- int, prime int) {
	for n := range in {
		if n%prime != 0 {
			out <- n
		}
	}
}

func main() {
	numbers := make(chan int)
	go generate(numbers)
	for i := 1; i <= 50; i++ {
		prime := <-numbers
		fmt.Printf("%5d", prime)
		if i%10 == 0 {
			fmt.Println()
		}
		rest := make(chan int)
		go filter(numbers, rest, prime)
		numbers = rest
	}
}
