import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.MathContext;
import java.math.RoundingMode;

/** Numbers that do not fit into a long. */
public class BigNumbers {
    private static BigInteger factorial(int n) {
        BigInteger result = BigInteger.ONE;
        for (int k = 2; k <= n; k++) {
            result = result.multiply(BigInteger.valueOf(k));
        }
        return result;
    }

    private static BigInteger fibonacci(int n) {
        BigInteger a = BigInteger.ZERO;
        BigInteger b = BigInteger.ONE;
        for (int i = 0; i < n; i++) {
            BigInteger sum = a.add(b);
            a = b;
            b = sum;
        }
        return a;
    }

    public static void main(String[] args) {
        System.out.println("35! = " + factorial(35));
        System.out.println("fib(222) = " + fibonacci(222));
        BigInteger mersenne = BigInteger.TWO.pow(89).subtract(BigInteger.ONE);
        System.out.println(mersenne + " is prime: " + mersenne.isProbablePrime(50));
        System.out.println("3^1000 mod 1000007 = " + BigInteger.valueOf(3).modPow(BigInteger.valueOf(1000), BigInteger.valueOf(1_000_007)));
        System.out.println("sqrt(2) = " + BigDecimal.valueOf(2).sqrt(new MathContext(40)));
        System.out.println("0.1 + 0.2 = " + new BigDecimal("0.1").add(new BigDecimal("0.2")));
        System.out.println("10 / 3 = " + BigDecimal.TEN.divide(BigDecimal.valueOf(3), 12, RoundingMode.HALF_EVEN));
        System.out.println("long wraps to " + (Long.MAX_VALUE + 1));
    }
}
