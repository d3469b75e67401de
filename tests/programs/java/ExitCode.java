import java.util.EnumSet;
import java.util.Set;

/** Runs health checks and exits with a code that says which failed. */
public class ExitCode {
    enum Check {
        DISK(1),
        CLOCK(2),
        QUEUE(4);

        final int bit;

        Check(int bit) {
            this.bit = bit;
        }

        boolean passes() {
            return this == CLOCK;
        }
    }

    public static void main(String[] args) {
        Set<Check> failed = EnumSet.noneOf(Check.class);
        for (Check check : Check.values()) {
            System.out.println(check + (check.passes() ? " ok" : " failed"));
            if (!check.passes()) {
                failed.add(check);
            }
        }
        Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("goodbye")));
        System.exit(failed.stream().mapToInt(check -> check.bit).sum());
    }
}
