// Keeps an inventory with the containers and algorithms of the standard library.
#include <algorithm>
#include <iomanip>
#include <iostream>
#include <map>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

struct Item {
    std::string name;
    int count;
    double price;

    double worth() const { return count * price; }
};

std::vector<Item> read(std::istream &input) {
    std::vector<Item> items;
    for (std::string line; std::getline(input, line);) {
        std::istringstream fields(line);
        if (Item item; fields >> item.name >> item.count >> item.price) {
            items.push_back(std::move(item));
        }
    }
    return items;
}

int main() {
    auto items = read(std::cin);
    std::sort(items.begin(), items.end(), [](const Item &a, const Item &b) { return a.worth() > b.worth(); });

    std::cout << std::fixed << std::setprecision(2);
    for (const auto &[name, count, price] : items) {
        std::cout << std::left << std::setw(8) << name << std::right << std::setw(4) << count << std::setw(8) << price << '\n';
    }

    std::map<char, std::vector<std::string>> index;
    for (const auto &item : items) {
        index[item.name.front()].push_back(item.name);
    }
    for (const auto &[letter, names] : index) {
        std::cout << letter << ": " << names.size() << '\n';
    }
    const double total = std::accumulate(items.begin(), items.end(), 0.0, [](double sum, const Item &i) { return sum + i.worth(); });
    std::cout << "total " << total << '\n';
}
