import java.util.Comparator;
import java.util.Map;
import java.util.Scanner;
import java.util.TreeMap;

/** Counts the words of standard input. */
public class StdinWords {
    public static void main(String[] args) {
        Map<String, Integer> counts = new TreeMap<>();
        int lines = 0;
        try (Scanner scanner = new Scanner(System.in)) {
            while (scanner.hasNextLine()) {
                lines++;
                for (String word : scanner.nextLine().toLowerCase().split("[^a-z']+")) {
                    if (!word.isEmpty()) {
                        counts.merge(word, 1, Integer::sum);
                    }
                }
            }
        }

        counts.entrySet().stream()
                .sorted(Map.Entry.<String, Integer>comparingByValue(Comparator.reverseOrder())
                        .thenComparing(Map.Entry.comparingByKey()))
                .limit(5)
                .forEach(entry -> System.out.printf("%-10s %s%n", entry.getKey(), "*".repeat(entry.getValue())));
        System.out.println(lines + " lines, " + counts.size() + " different words");
    }
}
