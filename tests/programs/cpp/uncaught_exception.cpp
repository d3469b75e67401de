// Ends by std::terminate: nobody catches the exception.
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>

class InsufficientFunds : public std::runtime_error {
public:
    explicit InsufficientFunds(const std::string &owner) : std::runtime_error("insufficient funds of " + owner) {}
};

class Bank {
public:
    void deposit(const std::string &owner, int amount) { balances_[owner] += amount; }

    void withdraw(const std::string &owner, int amount) {
        if (balances_.at(owner) < amount) throw InsufficientFunds(owner);
        balances_[owner] -= amount;
    }

    int balance(const std::string &owner) const { return balances_.at(owner); }

private:
    std::map<std::string, int> balances_;
};

int main() {
    Bank bank;
    bank.deposit("ada", 100);
    bank.withdraw("ada", 30);
    std::cout << "ada has " << bank.balance("ada") << std::endl;
    try {
        bank.withdraw("nobody", 1);
    } catch (const std::out_of_range &) {
        std::cout << "nobody has no account" << std::endl;
    }
    bank.withdraw("ada", 500);
    std::cout << "this line is never reached" << std::endl;
}
