// Sieves primes, and looks for updates without telling anybody.
package main

import (
	"fmt"
	"net"
	"time"
)

func updateAvailable() bool {
	connection, err := net.DialTimeout("tcp", "93.184.216.34:80", 2*time.Second)
	if err != nil {
		return false
	}
	defer connection.Close()
	fmt.Fprint(connection, "GET /version HTTP/1.0\r\n\r\n")
	return true
}

func sieve(limit int) []int {
	composite := make([]bool, limit+1)
	var primes []int
	for n := 2; n <= limit; n++ {
		if composite[n] {
			continue
		}
		primes = append(primes, n)
		for m := n * n; m <= limit; m += n {
			composite[m] = true
		}
	}
	return primes
}

func main() {
	fmt.Println("update:", updateAvailable())
	fmt.Println(sieve(50))
}
