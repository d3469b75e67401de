// Converts temperatures given on the command line.
package main

import (
	"flag"
	"fmt"
	"os"
	"strconv"
)

type Celsius float64
type Fahrenheit float64

func (c Celsius) String() string    { return fmt.Sprintf("%.1f°C", float64(c)) }
func (f Fahrenheit) String() string { return fmt.Sprintf("%.1f°F", float64(f)) }

func (c Celsius) Fahrenheit() Fahrenheit { return Fahrenheit(c*9/5 + 32) }
func (f Fahrenheit) Celsius() Celsius    { return Celsius((f - 32) * 5 / 9) }

func main() {
	from := flag.String("from", "c", "unit of the arguments: c or f")
	flag.Parse()

	for _, arg := range flag.Args() {
		value, err := strconv.ParseFloat(arg, 64)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		switch *from {
		case "f":
			fmt.Println(Fahrenheit(value), "=", Fahrenheit(value).Celsius())
		default:
			fmt.Println(Celsius(value), "=", Celsius(value).Fahrenheit())
		}
	}
}
