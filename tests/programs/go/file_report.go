// Writes notes, walks over them, and leaves a report.
package main

import (
	"bufio"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
)

func writeNotes(dir string, notes map[string]string) error {
	for name, text := range notes {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func countLines(path string) (int, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	lines := 0
	for scanner := bufio.NewScanner(file); scanner.Scan(); {
		lines++
	}
	return lines, nil
}

func main() {
	log.SetFlags(0)
	dir, err := os.MkdirTemp("", "notes")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	notes := map[string]string{"todo.txt": "milk\nbread\n", "work/plan.txt": "a\nb\nc\n", "work/empty.txt": ""}
	if err := writeNotes(dir, notes); err != nil {
		log.Fatal(err)
	}

	report, err := os.Create("report.txt")
	if err != nil {
		log.Fatal(err)
	}
	defer report.Close()
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		lines, err := countLines(path)
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		fmt.Printf("%-15s %d\n", name, lines)
		fmt.Fprintf(report, "%s,%d\n", name, lines)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
}
