// Does not compile: a variable is unused and a type does not fit.
package main

import "fmt"

type Account struct {
	Owner   string
	Balance int
}

func (a *Account) Deposit(amount int) {
	a.Balance += amount
}

func main() {
	account := Account{Owner: "Ada"}
	account.Deposit("one hundred")
	interest := 0.05
	fmt.Println("this line is never reached", account.Balance)
}
