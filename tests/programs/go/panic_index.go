// Panics: a matrix is read outside of its bounds, after one panic that was recovered.
package main

import "fmt"

type Matrix struct {
	rows, cols int
	cells      []float64
}

func NewMatrix(rows, cols int) *Matrix {
	return &Matrix{rows, cols, make([]float64, rows*cols)}
}

func (m *Matrix) At(row, col int) float64 {
	return m.cells[row*m.cols+col]
}

func safely(name string, f func()) {
	defer func() {
		if r := recover(); r != nil {
			fmt.Println(name, "recovered:", r)
		}
	}()
	f()
}

func main() {
	m := NewMatrix(3, 3)
	fmt.Println("corner:", m.At(2, 2))
	safely("division", func() {
		zero := int(m.At(0, 0))
		fmt.Println(1 / zero)
	})
	fmt.Println("outside:", m.At(3, 0))
}
