import java.util.HashMap;
import java.util.Map;

/** Follows managers up to the top of a company that has none. */
public class StackOverflow {
    private final Map<String, String> managers = new HashMap<>();

    void hire(String name, String manager) {
        managers.put(name, manager);
    }

    int level(String name) {
        String manager = managers.get(name);
        if (manager == null) {
            return 0;
        }
        return 1 + level(manager);
    }

    public static void main(String[] args) {
        StackOverflow company = new StackOverflow();
        company.hire("intern", "lead");
        company.hire("lead", "boss");
        System.out.println("level of intern: " + company.level("intern"));
        company.hire("boss", "intern");
        System.out.println("level of intern: " + company.level("intern"));
    }
}
