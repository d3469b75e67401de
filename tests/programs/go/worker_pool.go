// Hands jobs to a pool of goroutines and gathers what they return.
package main

import (
	"context"
	"fmt"
	"sort"
	"sync"
	"sync/atomic"
	"time"
)

type result struct{ n, steps int }

func collatz(n int) int {
	steps := 0
	for ; n != 1; steps++ {
		if n%2 == 0 {
			n /= 2
		} else {
			n = 3*n + 1
		}
	}
	return steps
}

func main() {
	jobs := make(chan int)
	results := make(chan result)
	var workers sync.WaitGroup
	var handled atomic.Int64

	for i := 0; i < 4; i++ {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for n := range jobs {
				results <- result{n, collatz(n)}
				handled.Add(1)
			}
		}()
	}
	go func() {
		for n := 1; n <= 200; n++ {
			jobs <- n
		}
		close(jobs)
		workers.Wait()
		close(results)
	}()

	var all []result
	for r := range results {
		all = append(all, r)
	}
	sort.Slice(all, func(i, j int) bool {
		return all[i].steps > all[j].steps || all[i].steps == all[j].steps && all[i].n < all[j].n
	})
	fmt.Println("handled:", handled.Load(), "longest:", all[:3])

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	select {
	case <-ctx.Done():
		fmt.Println("stopped:", ctx.Err())
	case <-time.After(5 * time.Second):
		fmt.Println("never")
	}
}
