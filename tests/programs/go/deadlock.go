// Two philosophers who each hold one fork and wait for the other.
package main

import (
	"fmt"
	"sync"
)

type fork struct{ sync.Mutex }

func dine(left, right *fork, ready *sync.WaitGroup, done chan<- bool) {
	left.Lock()
	defer left.Unlock()
	ready.Done()
	ready.Wait()

	right.Lock()
	defer right.Unlock()
	done <- true
}

func main() {
	var a, b fork
	var ready sync.WaitGroup
	ready.Add(2)
	done := make(chan bool)

	fmt.Println("dinner is served")
	go dine(&a, &b, &ready, done)
	go dine(&b, &a, &ready, done)
	<-done
	<-done
	fmt.Println("this line is never reached")
}
