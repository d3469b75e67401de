import java.util.ArrayDeque;
import java.util.Deque;

/** Ends by an exception of its own that has a cause. */
public class UncaughtException {
    static class EvaluationException extends RuntimeException {
        EvaluationException(String expression, Throwable cause) {
            super("cannot evaluate " + expression, cause);
        }
    }

    static int evaluate(String expression) {
        Deque<Integer> stack = new ArrayDeque<>();
        try {
            for (String token : expression.split(" ")) {
                switch (token) {
                    case "+" -> stack.push(stack.pop() + stack.pop());
                    case "*" -> stack.push(stack.pop() * stack.pop());
                    default -> stack.push(Integer.parseInt(token));
                }
            }
        } catch (NumberFormatException error) {
            throw new EvaluationException(expression, error);
        }
        return stack.pop();
    }

    public static void main(String[] args) {
        System.out.println(evaluate("2 3 + 4 *"));
        System.out.println(evaluate("2 three +"));
        System.out.println("this line is never reached");
    }
}
