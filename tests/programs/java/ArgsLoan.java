import java.util.HashMap;
import java.util.Locale;
import java.util.Map;

/** Computes the monthly payment of a loan given as --amount=N --years=N --rate=N. */
public class ArgsLoan {
    private static Map<String, Double> parse(String[] args) {
        Map<String, Double> options = new HashMap<>(Map.of("amount", 10_000.0, "years", 5.0, "rate", 4.0));
        for (String arg : args) {
            String[] parts = arg.split("=", 2);
            if (!parts[0].startsWith("--") || parts.length != 2) {
                throw new IllegalArgumentException("not an option: " + arg);
            }
            options.put(parts[0].substring(2), Double.valueOf(parts[1]));
        }
        return options;
    }

    static double payment(double amount, int months, double monthlyRate) {
        if (monthlyRate == 0) {
            return amount / months;
        }
        double growth = Math.pow(1 + monthlyRate, months);
        return amount * monthlyRate * growth / (growth - 1);
    }

    public static void main(String[] args) {
        Map<String, Double> options = parse(args);
        double amount = options.get("amount");
        int months = (int) (options.get("years") * 12);
        double monthly = payment(amount, months, options.get("rate") / 1200);
        System.out.printf(Locale.ROOT, "%d payments of %.2f%n", months, monthly);
        System.out.printf(Locale.ROOT, "interest: %.2f%n", monthly * months - amount);
    }
}
