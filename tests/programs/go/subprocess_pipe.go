// Starts other programs, feeds them and looks at how they ended.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

func pipe(input, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Stdin = strings.NewReader(input)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if stderr.Len() > 0 {
		fmt.Println("it complained:", strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(out)), err
}

func main() {
	sorted, err := pipe("3\n10\n2\n", "sort", "-n")
	fmt.Printf("%q %v\n", sorted, err)

	upper, err := pipe("quiet words", "tr", "a-z", "A-Z")
	fmt.Printf("%q %v\n", upper, err)

	_, err = pipe("", "sh", "-c", "echo disk on fire >&2; exit 9")
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		fmt.Println("exit code:", exit.ExitCode())
	}

	if _, err := exec.LookPath("no-such-program"); err != nil {
		fmt.Println("not found:", errors.Is(err, exec.ErrNotFound))
	}

	cmd := exec.Command("sh", "-c", "echo $GREETING")
	cmd.Env = append(os.Environ(), "GREETING=good evening")
	cmd.Stdout = os.Stdout
	if err := cmd.Run(); err != nil {
		fmt.Println(err)
	}
}
