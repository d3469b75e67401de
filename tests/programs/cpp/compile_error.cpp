// Does not compile: an abstract class is instantiated and a constant is changed.
#include <iostream>
#include <string>

class Instrument {
public:
    virtual ~Instrument() = default;
    virtual std::string play() const = 0;
};

class Piano : public Instrument {
public:
    std::string play(int key) const { return "note " + std::to_string(key); }
};

int main() {
    const int keys = 88;
    keys = 61;
    Piano piano;
    std::cout << "this line is never reached: " << piano.play(keys) << '\n';
}
