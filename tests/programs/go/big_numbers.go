// Numbers too big for a machine word, with math/big.
package main

import (
	"fmt"
	"math/big"
)

func fibonacci(n int) *big.Int {
	a, b := big.NewInt(0), big.NewInt(1)
	for i := 0; i < n; i++ {
		a.Add(a, b)
		a, b = b, a
	}
	return a
}

func harmonic(n int64) *big.Rat {
	sum := new(big.Rat)
	for k := int64(1); k <= n; k++ {
		sum.Add(sum, big.NewRat(1, k))
	}
	return sum
}

func main() {
	fmt.Println("fib(200) =", fibonacci(200))
	fmt.Println("40! =", new(big.Int).MulRange(1, 40))
	fmt.Println("C(80, 40) =", new(big.Int).Binomial(80, 40))

	mersenne := new(big.Int).Lsh(big.NewInt(1), 127)
	mersenne.Sub(mersenne, big.NewInt(1))
	fmt.Println("2^127-1 is prime:", mersenne.ProbablyPrime(20))
	fmt.Println("harmonic(15) =", harmonic(15).RatString())

	two := new(big.Float).SetPrec(200).SetInt64(2)
	fmt.Println("sqrt(2) =", new(big.Float).SetPrec(200).Sqrt(two).Text('f', 50))
}
