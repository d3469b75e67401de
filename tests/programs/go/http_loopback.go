// A counter behind HTTP, and a client of it in the same program.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
)

type counter struct {
	mu     sync.Mutex
	values map[string]int
}

func (c *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := strings.TrimPrefix(r.URL.Path, "/count/")
	switch r.Method {
	case http.MethodPost:
		c.values[name]++
		w.WriteHeader(http.StatusCreated)
	case http.MethodGet:
		if _, ok := c.values[name]; !ok {
			http.Error(w, "never counted", http.StatusNotFound)
			return
		}
	}
	json.NewEncoder(w).Encode(map[string]int{name: c.values[name]})
}

func show(response *http.Response, err error) {
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(response.StatusCode, strings.TrimSpace(string(body)))
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/count/", &counter{values: make(map[string]int)})
	go http.Serve(listener, mux)

	base := "http://" + listener.Addr().String() + "/count/"
	show(http.Get(base + "sheep"))
	var calls sync.WaitGroup
	for i := 0; i < 10; i++ {
		calls.Add(1)
		go func() {
			defer calls.Done()
			if response, err := http.Post(base+"sheep", "text/plain", nil); err == nil {
				response.Body.Close()
			}
		}()
	}
	calls.Wait()
	show(http.Get(base + "sheep"))
}
