import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;

/** Shares work among threads in several ways. */
public class ExecutorPrimes {
    private static boolean isPrime(int n) {
        return n > 1 && IntStream.rangeClosed(2, (int) Math.sqrt(n)).noneMatch(d -> n % d == 0);
    }

    private static int count(int low, int high) {
        return (int) IntStream.range(low, high).filter(ExecutorPrimes::isPrime).count();
    }

    public static void main(String[] args) throws InterruptedException, ExecutionException {
        ExecutorService pool = Executors.newFixedThreadPool(4);
        List<Future<Integer>> futures = new ArrayList<>();
        for (int start = 0; start < 10_000; start += 2_500) {
            int low = start;
            futures.add(pool.submit(() -> count(low, low + 2_500)));
        }
        int total = 0;
        for (Future<Integer> future : futures) {
            System.out.print(future.get() + " ");
            total += future.get();
        }
        System.out.println("= " + total);

        var owners = new ConcurrentSkipListMap<Integer, String>();
        AtomicInteger calls = new AtomicInteger();
        CompletableFuture<?>[] tasks = IntStream.range(0, 5)
                .mapToObj(i -> CompletableFuture.runAsync(() -> owners.put(i, "task " + calls.incrementAndGet()), pool))
                .toArray(CompletableFuture[]::new);
        CompletableFuture.allOf(tasks).join();
        pool.shutdown();
        System.out.println(owners.keySet() + " after " + calls + " calls");
        System.out.println("parallel: " + IntStream.range(0, 10_000).parallel().filter(ExecutorPrimes::isPrime).count());
    }
}
