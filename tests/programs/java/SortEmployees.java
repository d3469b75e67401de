import java.util.Comparator;
import java.util.List;
import java.util.TreeMap;
import java.util.stream.Collectors;

/** Sorts and groups employees with streams. */
public class SortEmployees {
    record Employee(String name, String team, int salary) {}

    private static final List<Employee> STAFF = List.of(
            new Employee("Nia", "core", 5200),
            new Employee("Tom", "web", 4100),
            new Employee("Ida", "core", 6100),
            new Employee("Rex", "web", 5200),
            new Employee("Ann", "data", 5200));

    public static void main(String[] args) {
        STAFF.stream()
                .sorted(Comparator.comparingInt(Employee::salary).reversed().thenComparing(Employee::name))
                .map(e -> String.format("%-4s %5d %s", e.name(), e.salary(), e.team()))
                .forEach(System.out::println);

        TreeMap<String, List<String>> teams = STAFF.stream().collect(Collectors.groupingBy(
                Employee::team, TreeMap::new, Collectors.mapping(Employee::name, Collectors.toList())));
        System.out.println(teams);

        var stats = STAFF.stream().mapToInt(Employee::salary).summaryStatistics();
        System.out.printf("from %d to %d, mean %.1f%n", stats.getMin(), stats.getMax(), stats.getAverage());
    }
}
