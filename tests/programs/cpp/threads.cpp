// Sums a range with threads and futures, and counts words under a mutex.
#include <atomic>
#include <future>
#include <iostream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

long long sum(long long low, long long high) {
    long long total = 0;
    for (long long n = low; n < high; ++n) total += n * n;
    return total;
}

class WordCount {
public:
    void add(const std::string &text) {
        std::istringstream words(text);
        for (std::string word; words >> word;) {
            std::lock_guard lock(mutex_);
            ++counts_[word];
        }
        ++texts_;
    }
    const std::map<std::string, int> &counts() const { return counts_; }
    int texts() const { return texts_; }

private:
    std::mutex mutex_;
    std::map<std::string, int> counts_;
    std::atomic<int> texts_{0};
};

int main() {
    std::vector<std::future<long long>> parts;
    for (long long low = 0; low < 4000; low += 1000) {
        parts.push_back(std::async(std::launch::async, sum, low, low + 1000));
    }
    long long total = 0;
    for (auto &part : parts) total += part.get();
    std::cout << "squares: " << total << '\n';

    WordCount words;
    std::vector<std::thread> threads;
    for (const char *text : {"to be or not to be", "that is the question", "to sleep"}) {
        threads.emplace_back([&words, text] { words.add(text); });
    }
    for (auto &thread : threads) thread.join();
    for (const auto &[word, count] : words.counts()) {
        if (count > 1) std::cout << word << ' ' << count << '\n';
    }
    std::cout << "texts: " << words.texts() << '\n';
}
