import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/** Moves money in many threads and shows that none is lost. */
public class Bank {
    record Transfer(String from, String to, int amount) {}

    private final Map<String, Integer> balances = new TreeMap<>();

    synchronized boolean move(Transfer transfer) {
        if (balances.getOrDefault(transfer.from(), 0) < transfer.amount()) {
            return false;
        }
        balances.merge(transfer.from(), -transfer.amount(), Integer::sum);
        balances.merge(transfer.to(), transfer.amount(), Integer::sum);
        return true;
    }

    public static void main(String[] args) throws InterruptedException {
        Bank bank = new Bank();
        List.of("Ada", "Grace", "Linus").forEach(owner -> bank.balances.put(owner, 1_000));

        ExecutorService clerks = Executors.newFixedThreadPool(4);
        for (int i = 0; i < 100; i++) {
            clerks.submit(() -> bank.move(new Transfer("Ada", "Grace", 3)));
            clerks.submit(() -> bank.move(new Transfer("Grace", "Linus", 2)));
            clerks.submit(() -> bank.move(new Transfer("Linus", "Ada", 1)));
        }
        clerks.shutdown();
        clerks.awaitTermination(10, TimeUnit.SECONDS);

        bank.balances.forEach((owner, balance) -> System.out.printf("%-6s %,6d%n", owner, balance));
        System.out.printf("total  %,6d%n", bank.balances.values().stream().mapToInt(Integer::intValue).sum());
    }
}
