import java.util.ArrayList;
import java.util.List;

/** Does not compile: a type does not fit, and a method is missing. */
public class CompileError {
    interface Animal {
        String sound();

        int legs();
    }

    static class Duck implements Animal {
        @Override
        public String sound() {
            return "quack";
        }
    }

    public static void main(String[] args) {
        List<Animal> animals = new ArrayList<>();
        animals.add(new Duck());
        int count = "two";
        System.out.println("this line is never reached: " + animals.size() + count);
    }
}
